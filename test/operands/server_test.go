//go:build operands

package operands

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

const (
	// startExpiry limits the start of a server on a busy machine.
	startExpiry  = 4 * time.Minute
	pollInterval = 200 * time.Millisecond
)

// withAllFeatures returns spec with storage, served artifacts, custom CA certificates, garbage collection, trace archival and a workspace
// selector.
func withAllFeatures(spec mlflowv1.MLflowSpec, olderThan string) mlflowv1.MLflowSpec {
	spec.Storage = &corev1.PersistentVolumeClaimSpec{}
	spec.ServeArtifacts = true
	spec.ArtifactsDestination = "file:///mlflow/artifacts"
	spec.CABundleConfigMap = &mlflowv1.CABundleConfigMapRef{Name: "authorities"}
	spec.GarbageCollection = &mlflowv1.GarbageCollectionConfig{Schedule: "@daily", OlderThan: olderThan}
	spec.TraceArchival = &mlflowv1.TraceArchivalConfig{Enabled: true, Schedule: "@daily", Location: "file:///mlflow/archive", Retention: "1h"}
	spec.WorkspaceLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	return spec
}

// TestServer starts all programs of an MLflow in the order of a cluster: CA bundle, migration, server, jobs. Package e2e does so with
// SQLite on a node.
func TestServer(t *testing.T) {
	t.Parallel()
	for _, release := range testedReleases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			p.image = mlflowImages[release]
			testServer(p)
		})
	}
}

func testServer(p *pod) {
	port, err := machine.FreePort()
	p.must(err)
	p.port = strconv.Itoa(port)
	name := "whole" + strings.ReplaceAll(p.image.release, ".", "")
	p.must(database.Create(p.t.Context(), name))
	// The URI has no TLS options: the environment enables verification with the CA bundle.
	s := &mlflowServer{pod: p, spec: fromSecret(p, database.URI(name), "")}
	s.spec.Env = append(s.spec.Env, sourceValidation)
	s.buildBundle()
	s.runMigration()
	s.start()
	s.checkEndpoints()
	s.checkSources()
	s.checkGarbageCollection()
	s.checkTraceArchival()
	s.stop()
}

// mlflowServer is an MLflow that runs on this machine.
type mlflowServer struct {
	*pod
	spec    mlflowv1.MLflowSpec
	client  http.Client
	process *exec.Cmd
	exited  chan struct{}
}

func (s *mlflowServer) reportResponse(program, result string) {
	report.add("MLflow "+s.image.release+", "+program, result)
}

// buildBundle runs the init container, and creates a client that trusts the CA.
func (s *mlflowServer) buildBundle() {
	s.t.Helper()
	containers := render(s.t, withAllFeatures(s.spec, "")).server().InitContainers
	if len(containers) != 1 {
		s.t.Fatalf("%d init containers, want one", len(containers))
	}
	result := s.run(s.t.Context(), &containers[0])
	if want := "trusting 1 certificates from 1 sources\n"; result.code != 0 || result.stdout != want {
		s.t.Fatalf("init container: %+v, want %q", result, want)
	}
	s.reportResponse("init container of the CA bundle", strings.TrimSpace(result.stdout))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.CA)
	s.client = http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// runMigration runs the migration over verified TLS to PostgreSQL.
func (s *mlflowServer) runMigration() {
	s.t.Helper()
	result := s.migrate(withAllFeatures(s.spec, ""), oldest)
	if result.code != 0 {
		s.t.Fatalf("migration: %+v", result)
	}
	s.reportResponse("migration over verified TLS", result.oneLine())
}

// start starts the server and waits until both probes succeed.
func (s *mlflowServer) start() {
	s.t.Helper()
	all := render(s.t, withAllFeatures(s.spec, ""))
	for name, text := range all.configMap("mlflow-trace-archival-config") {
		s.write("config/"+name, s.toLocal(text))
	}
	container := all.server().Containers[0]
	log, err := os.Create(s.path("server.log"))
	s.must(err)
	defer log.Close()
	s.process = s.command(context.Background(), &container)
	s.process.Stdout, s.process.Stderr = log, log
	s.must(s.process.Start())
	s.exited = make(chan struct{})
	go func() { _ = s.process.Wait(); close(s.exited) }()
	s.t.Cleanup(func() { _ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL); <-s.exited })

	command := "mlflow " + strings.Join(s.process.Args[max(slices.Index(s.process.Args, "server"), 1):], " ")
	for name, probe := range map[string]*corev1.Probe{"liveness": container.LivenessProbe, "readiness": container.ReadinessProbe} {
		path := probe.HTTPGet.Path
		NewWithT(s.t).Eventually(func(g Gomega) {
			g.Expect(s.exited).NotTo(BeClosed())
			status, _, err := s.request(http.MethodGet, path, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusOK))
		}, startExpiry, pollInterval).Should(Succeed(), func() string { return s.read("server.log") })
		_, body, err := s.request(http.MethodGet, path, nil)
		s.must(err)
		s.reportResponse("server, "+name+", GET https://…"+path, "200 "+strings.TrimSpace(body))
	}
	s.t.Log(command)
	if strings.Contains(s.read("server.log"), "Creating initial MLflow database tables") {
		s.t.Error("the server created tables, which the migration must create")
	}
}

// request sends a request to the server. A body that is not a string is encoded as JSON.
func (s *mlflowServer) request(method, path string, body any) (status int, responseBody string, err error) {
	content, isText := body.(string)
	if !isText && body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, "", err
		}
		content = string(encoded)
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.address()+path, strings.NewReader(content))
	if err != nil {
		return 0, "", err
	}
	if !isText {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// expect sends a request and fails unless the response has the status.
func (s *mlflowServer) expect(want int, method, path string, body any) string {
	s.t.Helper()
	status, response, err := s.request(method, path, body)
	s.must(err)
	if status != want {
		s.t.Fatalf("%s %s: %d %s, want %d\n%s", method, path, status, response, want, s.read("server.log"))
	}
	return response
}

// checkEndpoints tests the metrics, the version, the minimum TLS version and CORS.
func (s *mlflowServer) checkEndpoints() {
	s.t.Helper()
	var monitor unstructured.Unstructured
	for _, o := range render(s.t, withAllFeatures(s.spec, "")).objects {
		if o.GetKind() == "ServiceMonitor" {
			monitor = *o
		}
	}
	endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	s.must(err)
	path := endpoints[0].(map[string]any)["path"].(string)
	s.expect(http.StatusOK, http.MethodGet, "/mlflow/api/2.0/mlflow/experiments/search?max_results=1", nil) // some releases do not count probes
	metrics := s.expect(http.StatusOK, http.MethodGet, path, nil)
	if !strings.Contains(metrics, "mlflow_http_request_total") {
		s.t.Errorf("no metrics of MLflow in\n%s", metrics)
	}
	s.reportResponse("server, scrape, GET https://…"+path, "200, "+strconv.Itoa(strings.Count(metrics, "\n"))+" lines")
	if version := s.expect(http.StatusOK, http.MethodGet, "/mlflow/version", nil); version != s.image.release {
		s.t.Errorf("version %s, want %s", version, s.image.release)
	}
	legacyTLS := s.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	legacyTLS.MaxVersion = tls.VersionTLS12
	if connection, err := tls.Dial("tcp", "localhost:"+s.port, legacyTLS); err == nil {
		s.t.Errorf("the server accepts TLS 1.2 with %s", tls.CipherSuiteName(connection.ConnectionState().CipherSuite))
	}
	for origin, want := range map[string]string{s.address(): s.address(), "https://other.example.com": ""} {
		if got := s.allowedOrigin(origin); got != want {
			s.t.Errorf("[mlflow-13] Access-Control-Allow-Origin for a page at %s is %q, want %q", origin, got, want)
		}
	}
	s.reportResponse("server, GET from a page of another origin", "no Access-Control-Allow-Origin")
}

// allowedOrigin returns the Access-Control-Allow-Origin header for an origin.
func (s *mlflowServer) allowedOrigin(origin string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.address()+"/mlflow/health", nil)
	s.must(err)
	request.Header.Set("Origin", origin)
	response, err := s.client.Do(request)
	s.must(err)
	s.must(response.Body.Close())
	return response.Header.Get("Access-Control-Allow-Origin")
}

// checkGarbageCollection deletes a run with an artifact, and expects that garbage collection deletes both only after the minimum age.
func (s *mlflowServer) checkGarbageCollection() {
	s.t.Helper()
	var created struct {
		Run struct {
			Info struct {
				ID        string `json:"run_id"`
				Artifacts string `json:"artifact_uri"`
			} `json:"info"`
		} `json:"run"`
	}
	const api = "/mlflow/api/2.0/mlflow"
	response := s.expect(http.StatusOK, http.MethodPost, api+"/runs/create", map[string]any{"experiment_id": "0"})
	s.must(json.Unmarshal([]byte(response), &created))
	id := created.Run.Info.ID
	below, isProxied := strings.CutPrefix(created.Run.Info.Artifacts, "mlflow-artifacts:/")
	if !isProxied {
		s.t.Fatalf("artifacts are at %s, want artifacts that the server proxies", created.Run.Info.Artifacts)
	}
	s.expect(http.StatusOK, http.MethodPut, "/mlflow/api/2.0/mlflow-artifacts/artifacts/"+below+"/model.txt", "weights")
	file := filepath.Join("mlflow", "artifacts", below, "model.txt")
	if s.read(file) != "weights" {
		s.t.Fatalf("the artifact is not at %s", file)
	}
	s.expect(http.StatusOK, http.MethodPost, api+"/runs/delete", map[string]any{"run_id": id})

	recent := s.runGarbageCollection("30d")
	s.expect(http.StatusOK, http.MethodGet, api+"/runs/get?run_id="+id, nil)
	if s.read(file) != "weights" {
		s.t.Error("the artifact of a recently deleted run was deleted")
	}
	s.reportResponse("mlflow gc --older-than=30d", fmt.Sprintf("%d, the recently deleted run is kept", recent.code))

	// The start of the command takes longer than the minimum age.
	expired := s.runGarbageCollection("1s")
	s.expect(http.StatusNotFound, http.MethodGet, api+"/runs/get?run_id="+id, nil)
	if s.read(file) != "" {
		s.t.Errorf("the artifact was not deleted: %+v", expired)
	}
	if !strings.Contains(expired.stdout+expired.stderr, id) {
		s.t.Errorf("run %s is not in the output %+v", id, expired)
	}
	s.reportResponse("mlflow gc --older-than=1s", fmt.Sprintf("%d, run and artifact are deleted: GET of the run 404", expired.code))
}

func (s *mlflowServer) runGarbageCollection(olderThan string) containerResult {
	s.t.Helper()
	return s.runCronJob("mlflow-gc", withAllFeatures(s.spec, olderThan))
}

// runCronJob runs the container of a CronJob, which must succeed and not print the password.
func (s *mlflowServer) runCronJob(name string, spec mlflowv1.MLflowSpec) containerResult {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), runExpiry)
	defer cancel()
	result := s.run(ctx, &render(s.t, spec).cronJobPod(name).Containers[0])
	if result.code != 0 || strings.Contains(result.stdout+result.stderr, "hunter2") {
		s.t.Fatalf("%s failed or printed a password: %+v\n%s", name, result, s.read("server.log"))
	}
	return result
}

// checkTraceArchival expects that the CronJob archives an old trace. [mlflow-97]
func (s *mlflowServer) checkTraceArchival() {
	s.t.Helper()
	s.seedOldTrace()
	result := s.runCronJob("mlflow-trace-archival", withAllFeatures(s.spec, ""))
	want := "Trace archival scheduler pass archived 1 trace(s) across 1 scope(s)"
	if !strings.Contains(result.stderr, want) {
		s.t.Errorf("[mlflow-26] %q is not in %+v", want, result)
	}
	s.reportResponse("trace archival", "0: "+want)
}

// seedOldTrace creates a trace with one span that ended two hours ago.
func (s *mlflowServer) seedOldTrace() {
	s.t.Helper()
	var created struct {
		ID string `json:"experiment_id"`
	}
	s.must(json.Unmarshal([]byte(s.expect(http.StatusOK, http.MethodPost, "/mlflow/api/2.0/mlflow/experiments/create", map[string]any{"name": "traced"})), &created))
	start := time.Now().Add(-2 * time.Hour)
	span := map[string]any{
		"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "answer", "kind": 1,
		"startTimeUnixNano": strconv.FormatInt(start.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(start.Add(time.Second).UnixNano(), 10),
	}
	body, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{"scopeSpans": []any{map[string]any{"spans": []any{span}}}}}})
	s.must(err)
	path := "/v1/traces"
	if s.image.release == newest { // since 3.16, and in the HTTPRoute
		path = "/mlflow/v1/traces"
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.address()+path, bytes.NewReader(body))
	s.must(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Mlflow-Experiment-Id", created.ID)
	response, err := s.client.Do(request)
	s.must(err)
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("POST "+path+": %d %s (%v)\n%s", response.StatusCode, text, err, s.read("server.log"))
	}
}

// stop stops the server as a kubelet does.
func (s *mlflowServer) stop() {
	s.t.Helper()
	s.must(s.process.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		s.t.Errorf("the server still runs 30 s after SIGTERM\n%s", s.read("server.log"))
	}
	if bytes.Contains([]byte(s.read("server.log")), []byte("hunter2")) {
		s.t.Error("the server logged the password")
	}
	s.reportResponse("server, SIGTERM", "exited")
}

// TestPublicMLflowRejectsOmittedOptions tests the arguments in omittedOptions. If it fails for an argument, delete the entry.
func TestPublicMLflowRejectsOmittedOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rendered, want string }{
		{"--app-name=kubernetes-auth", "Invalid value for '--app-name'"},
		{"--workspace-store-uri=kubernetes://", "kubernetes"},
	} {
		t.Run(c.rendered, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			port, err := machine.FreePort()
			p.must(err)
			p.port = strconv.Itoa(port)
			container := render(t, mlflowv1.MLflowSpec{BackendStoreURI: "sqlite:////mlflow/mlflow.db", ServeArtifacts: true}).server().Containers[0]
			if !slices.Contains(container.Args, c.rendered) {
				t.Fatalf("%s is not rendered: %v", c.rendered, container.Args)
			}
			ctx, cancel := context.WithTimeout(t.Context(), startExpiry)
			defer cancel()
			command := p.command(ctx, &container)
			command.Args = append(command.Args, c.rendered)
			output, err := command.CombinedOutput()
			if err == nil || ctx.Err() != nil || !strings.Contains(string(output), c.want) {
				t.Errorf("error %v, want an error and %q in the output:\n%s", err, c.want, output)
			}
		})
	}
}
