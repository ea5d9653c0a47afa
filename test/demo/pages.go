package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

const (
	// pageTimeout limits the time until a gateway reaches its server.
	pageTimeout = time.Minute
	// createToken is the format of the command that prints a token of the user. Its argument is the namespace.
	createToken = "kubectl -n %s create token demo --duration=8h"
	mlflowPath  = "/mlflow"
	pageCount   = 2  // number of servers with pages
	metricSteps = 60 // number of steps in the metrics of the logged run
)

//go:embed user.yaml
var demoUser string

// webServer is a server with web pages that requires a token.
type webServer struct {
	name, service, secret string
	// readyPath is a path to which a ready server responds with 200.
	readyPath string
	url       string // URL of its gateway
}

// openPages starts a gateway on loopback for each web server, logs a run in MLflow, and returns the instructions for users.
func (d *demo) openPages(ctx context.Context, env *environment) (string, error) {
	if _, err := env.instance.Kubectl(ctx, demoUser, "-n", env.namespace, "apply", "-f", "-"); err != nil {
		return "", err
	}
	token, err := env.instance.Kubectl(ctx, "", "-n", env.namespace, "create", "token", "demo")
	if err != nil {
		return "", err
	}
	gateway, err := cluster.BuildProgram(ctx, "./test/demo/gateway", nil, d.progress)
	if err != nil {
		return "", err
	}
	ray, err := env.rayNames(ctx)
	if err != nil {
		return "", err
	}
	servers := []*webServer{
		{name: "mlflow", service: "mlflow", secret: "mlflow-tls", readyPath: mlflowPath + "/"},
		{name: "ray", service: ray.ProxyService, secret: ray.ProxyTLS, readyPath: "/"},
	}
	for i, server := range servers {
		if err := env.startGateway(ctx, server, gateway, env.instance.Ports()[i]); err != nil {
			return "", err
		}
		if err := server.waitReady(ctx, token); err != nil {
			return "", err
		}
	}
	experiment, run, err := mlflowClient{servers[0].url + mlflowPath, token, env.namespace}.logRun(ctx, d.clock.Now())
	if err != nil {
		return "", fmt.Errorf("logging a run in MLflow: %w", err)
	}
	return fmt.Sprintf("Open in a browser on this machine:\n"+
		"  a run in MLflow       %s%s/#/experiments/%s/runs/%s?workspace=%s\n"+
		"  the dashboard of Ray  %s/#/cluster\n"+
		"The user name is arbitrary, and the password is a token:\n  "+createToken+"\n",
		servers[0].url, mlflowPath, experiment, run, env.namespace, servers[1].url, env.namespace), nil
}

// rayNames returns the names of the children of the RayCluster among the samples.
func (env *environment) rayNames(ctx context.Context) (raycluster.Names, error) {
	index := slices.IndexFunc(env.samples, isRay)
	if index < 0 {
		return raycluster.Names{}, errors.New("no RayCluster among the samples")
	}
	live := emptyOf(env.samples[index])
	if err := env.client.Get(ctx, client.ObjectKeyFromObject(env.samples[index]), live); err != nil {
		return raycluster.Names{}, fmt.Errorf("reading %s: %w", title(env.samples[index]), err)
	}
	return raycluster.View(live.Object).Names(), nil
}

// startGateway starts a gateway to a server in the network of the cluster, on a port of this machine.
func (env *environment) startGateway(ctx context.Context, server *webServer, gateway string, port int) error {
	var service corev1.Service
	if err := env.client.Get(ctx, client.ObjectKey{Namespace: env.namespace, Name: server.service}, &service); err != nil {
		return fmt.Errorf("reading the Service of %s: %w", server.name, err)
	}
	var secret corev1.Secret
	if err := env.client.Get(ctx, client.ObjectKey{Namespace: env.namespace, Name: server.secret}, &secret); err != nil {
		return fmt.Errorf("reading the certificate of %s: %w", server.name, err)
	}
	caFile := filepath.Join(env.instance.Dir(), server.name+".crt")
	if err := os.WriteFile(caFile, secret.Data["ca.crt"], 0o600); err != nil {
		return fmt.Errorf("writing the certificate of %s: %w", server.name, err)
	}
	listen, servicePort := net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), strconv.Itoa(int(service.Spec.Ports[0].Port))
	server.url = "http://" + listen
	_, err := env.instance.StartProcess("gateway-"+server.name, gateway, []string{
		"--listen=" + listen, "--server=https://" + net.JoinHostPort(server.service+"."+env.namespace+".svc", servicePort),
		"--address=" + net.JoinHostPort(service.Spec.ClusterIP, servicePort), "--authority=" + caFile,
	}, nil)
	return err
}

// waitReady waits until the server responds through its gateway.
func (s *webServer) waitReady(ctx context.Context, token string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyPollInterval, pageTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = send(ctx, http.MethodGet, s.url+s.readyPath, token, nil, nil)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the pages of %s: %w", s.name, last)
	}
	return nil
}

// send sends a request and returns the body of the response. It returns an error unless the status is 200.
func send(ctx context.Context, method, url, token string, headers map[string]string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth("demo", token)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // the body is only read
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, url, response.Status, content)
	}
	return content, err
}

// mlflowClient calls the REST API of MLflow.
type mlflowClient struct{ url, token, workspace string }

// post sends a request and decodes the response into a value, unless the value is nil.
func (m mlflowClient) post(ctx context.Context, path string, body map[string]any, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	headers := map[string]string{"Content-Type": "application/json", "X-MLFLOW-WORKSPACE": m.workspace}
	response, err := send(ctx, http.MethodPost, m.url+"/api/2.0/mlflow/"+path, m.token, headers, content)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(response, into)
}

// logRun creates an experiment with a finished run.
func (m mlflowClient) logRun(ctx context.Context, now time.Time) (experiment, run string, err error) {
	var created struct {
		ID  string `json:"experiment_id"`
		Run struct {
			Info struct {
				ID string `json:"run_id"`
			} `json:"info"`
		} `json:"run"`
	}
	if err := m.post(ctx, "experiments/create", map[string]any{"name": "demo"}, &created); err != nil {
		return "", "", err
	}
	startTime := now.Add(-time.Minute).UnixMilli()
	start := map[string]any{"experiment_id": created.ID, "run_name": "first-run", "start_time": startTime}
	if err := m.post(ctx, "runs/create", start, &created); err != nil {
		return "", "", err
	}
	logged := map[string]any{
		"run_id": created.Run.Info.ID, "metrics": curves(startTime), "params": []any{map[string]any{"key": "learning_rate", "value": "0.1"}},
	}
	if err := m.post(ctx, "runs/log-batch", logged, nil); err != nil {
		return "", "", err
	}
	finish := map[string]any{"run_id": created.Run.Info.ID, "status": "FINISHED", "end_time": now.UnixMilli()}
	return created.ID, created.Run.Info.ID, m.post(ctx, "runs/update", finish, nil)
}

// curves returns the metrics of a simulated training.
func curves(start int64) []any {
	var metrics []any
	for step := range metricSteps {
		decay := math.Exp(-float64(step) / (metricSteps / 6))
		for key, value := range map[string]float64{"loss": 0.2 + 0.5*decay, "accuracy": 0.9 - 0.4*decay} {
			metrics = append(metrics, map[string]any{"key": key, "value": value, "step": step, "timestamp": start + int64(step)*1000})
		}
	}
	return metrics
}
