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
	// startExpiry bounds the start of a server on a busy machine.
	startExpiry = 4 * time.Minute
	poll        = 200 * time.Millisecond
)

// withAllFeatures returns an MLflow with all features: server, garbage collection, trace archival and custom authorities.
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

// TestServer starts all programs of an MLflow in the order of a cluster: authorities, migration, server, jobs. The suite e2e does so with
// SQLite on a node.
func TestServer(t *testing.T) {
	t.Parallel()
	for _, release := range supported() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			p := newPod(t)
			p.image = interpreters[release]
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
	// The URI has no TLS options: the environment sets verification with the bundle.
	s := &served{pod: p, spec: fromSecret(p, database.URI(name), "")}
	s.spec.Env = append(s.spec.Env, ownSources)
	s.bundle()
	s.migrated()
	s.started()
	s.responds()
	s.limitsSources()
	s.collected()
	s.archived()
	s.ended()
}

// served is an MLflow that runs on this machine.
type served struct {
	*pod
	spec    mlflowv1.MLflowSpec
	client  http.Client
	process *exec.Cmd
	exited  chan struct{}
}

func (s *served) reportAnswer(started, answered string) {
	report.add("MLflow "+s.image.release+", "+started, answered)
}

// bundle runs the init container.
func (s *served) bundle() {
	s.t.Helper()
	containers := render(s.t, withAllFeatures(s.spec, "")).server().InitContainers
	if len(containers) != 1 {
		s.t.Fatalf("%d init containers, want one", len(containers))
	}
	end := s.run(s.t.Context(), &containers[0])
	if want := "trusting 1 certificates from 1 sources\n"; end.code != 0 || end.stdout != want {
		s.t.Fatalf("the bundle: %+v, want %q", end, want)
	}
	s.reportAnswer("init container of the CA bundle", strings.TrimSpace(end.stdout))
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority.CA)
	s.client = http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}}
}

// migrated runs the migration over verified TLS to PostgreSQL.
func (s *served) migrated() {
	s.t.Helper()
	end := s.migrate(withAllFeatures(s.spec, ""), oldest)
	if end.code != 0 {
		s.t.Fatalf("the migration: %+v", end)
	}
	s.reportAnswer("migration over verified TLS", end.oneLine())
}

// started starts the server, and waits until both probes succeed.
func (s *served) started() {
	s.t.Helper()
	all := render(s.t, withAllFeatures(s.spec, ""))
	for name, text := range all.configMap("mlflow-trace-archival-config") {
		s.write("config/"+name, s.here(text))
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
			status, _, err := s.ask(http.MethodGet, path, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(status).To(Equal(http.StatusOK))
		}, startExpiry, poll).Should(Succeed(), func() string { return s.read("server.log") })
		_, body, err := s.ask(http.MethodGet, path, nil)
		s.must(err)
		s.reportAnswer("server, "+name+", GET https://…"+path, "200 "+strings.TrimSpace(body))
	}
	s.t.Log(command)
	if strings.Contains(s.read("server.log"), "Creating initial MLflow database tables") {
		s.t.Error("the server created tables, although the migration creates them")
	}
}

// ask sends a request to the server: a string as it is, other bodies as JSON.
func (s *served) ask(method, path string, body any) (status int, reply string, err error) {
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

// expect sends a request, and fails unless the response has the status.
func (s *served) expect(want int, method, path string, body any) string {
	s.t.Helper()
	status, response, err := s.ask(method, path, body)
	s.must(err)
	if status != want {
		s.t.Fatalf("%s %s: %d %s, want %d\n%s", method, path, status, response, want, s.read("server.log"))
	}
	return response
}

// answers tests the endpoints that others use: metrics, version and CORS.
func (s *served) responds() {
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
		s.t.Errorf("no counters of MLflow in\n%s", metrics)
	}
	s.reportAnswer("server, scrape, GET https://…"+path, "200, "+strconv.Itoa(strings.Count(metrics, "\n"))+" lines")
	if version := s.expect(http.StatusOK, http.MethodGet, "/mlflow/version", nil); version != s.image.release {
		s.t.Errorf("this is MLflow %s, want %s", version, s.image.release)
	}
	older := s.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	older.MaxVersion = tls.VersionTLS12
	if connection, err := tls.Dial("tcp", "localhost:"+s.port, older); err == nil {
		s.t.Errorf("a client of TLS 1.2 is connected by %s", tls.CipherSuiteName(connection.ConnectionState().CipherSuite))
	}
	for origin, want := range map[string]string{s.address(): s.address(), "https://elsewhere.example.com": ""} {
		if got := s.readableFrom(origin); got != want {
			s.t.Errorf("[mlflow-13] a page at %s may read answers of pages at %q, want %q", origin, got, want)
		}
	}
	s.reportAnswer("server, GET from a page elsewhere", "no Access-Control-Allow-Origin")
}

// readableFrom returns the Access-Control-Allow-Origin header for an origin.
func (s *served) readableFrom(origin string) string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.address()+"/mlflow/health", nil)
	s.must(err)
	request.Header.Set("Origin", origin)
	response, err := s.client.Do(request)
	s.must(err)
	s.must(response.Body.Close())
	return response.Header.Get("Access-Control-Allow-Origin")
}

// collected deletes a run with an artifact, and checks that garbage collection deletes both only after the minimum age.
func (s *served) collected() {
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
		s.t.Fatalf("artifacts are at %s, want a place that the server keeps", created.Run.Info.Artifacts)
	}
	s.expect(http.StatusOK, http.MethodPut, "/mlflow/api/2.0/mlflow-artifacts/artifacts/"+below+"/model.txt", "weights")
	file := filepath.Join("mlflow", "artifacts", below, "model.txt")
	if s.read(file) != "weights" {
		s.t.Fatalf("the artifact is not at %s", file)
	}
	s.expect(http.StatusOK, http.MethodPost, api+"/runs/delete", map[string]any{"run_id": id})

	young := s.collect("30d")
	s.expect(http.StatusOK, http.MethodGet, api+"/runs/get?run_id="+id, nil)
	if s.read(file) != "weights" {
		s.t.Error("the artifact of a recently deleted run was removed")
	}
	s.reportAnswer("mlflow gc --older-than=30d", fmt.Sprintf("%d, the run deleted now is kept", young.code))

	// The command takes longer to start than the minimum age.
	old := s.collect("1s")
	s.expect(http.StatusNotFound, http.MethodGet, api+"/runs/get?run_id="+id, nil)
	if s.read(file) != "" {
		s.t.Errorf("the artifact is still there: %+v", old)
	}
	if !strings.Contains(old.stdout+old.stderr, id) {
		s.t.Errorf("run %s is not named in %+v", id, old)
	}
	s.reportAnswer("mlflow gc --older-than=1s", fmt.Sprintf("%d, run and artifact are gone: GET of the run 404", old.code))
}

func (s *served) collect(olderThan string) ended {
	s.t.Helper()
	return s.chore("mlflow-gc", withAllFeatures(s.spec, olderThan))
}

// chore runs the container of a CronJob, which must succeed without printing the password.
func (s *served) chore(name string, spec mlflowv1.MLflowSpec) ended {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), runExpiry)
	defer cancel()
	end := s.run(ctx, &render(s.t, spec).chore(name).Containers[0])
	if end.code != 0 || strings.Contains(end.stdout+end.stderr, "hunter2") {
		s.t.Fatalf("%s failed or printed a password: %+v\n%s", name, end, s.read("server.log"))
	}
	return end
}

// archived runs the archiver, which must archive the spans of an old trace. [mlflow-97]
func (s *served) archived() {
	s.t.Helper()
	s.seedOldTrace()
	end := s.chore("mlflow-trace-archival", withAllFeatures(s.spec, ""))
	want := "Trace archival scheduler pass archived 1 trace(s) across 1 scope(s)"
	if !strings.Contains(end.stderr, want) {
		s.t.Errorf("[mlflow-26] %q is not in %+v", want, end)
	}
	s.reportAnswer("trace archival", "0: "+want)
}

// seedOldTrace sends a trace to the server, with one span that ended two hours ago.
func (s *served) seedOldTrace() {
	s.t.Helper()
	var made struct {
		ID string `json:"experiment_id"`
	}
	s.must(json.Unmarshal([]byte(s.expect(http.StatusOK, http.MethodPost, "/mlflow/api/2.0/mlflow/experiments/create", map[string]any{"name": "traced"})), &made))
	began := time.Now().Add(-2 * time.Hour)
	span := map[string]any{
		"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331", "name": "answer", "kind": 1,
		"startTimeUnixNano": strconv.FormatInt(began.UnixNano(), 10), "endTimeUnixNano": strconv.FormatInt(began.Add(time.Second).UnixNano(), 10),
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
	request.Header.Set("X-Mlflow-Experiment-Id", made.ID)
	response, err := s.client.Do(request)
	s.must(err)
	defer response.Body.Close()
	if reply, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("POST "+path+": %d %s (%v)\n%s", response.StatusCode, reply, err, s.read("server.log"))
	}
}

// ended stops the server like a kubelet.
func (s *served) ended() {
	s.t.Helper()
	s.must(s.process.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		s.t.Errorf("the server is still there 30 s after SIGTERM\n%s", s.read("server.log"))
	}
	if bytes.Contains([]byte(s.read("server.log")), []byte("hunter2")) {
		s.t.Error("the server logged the password")
	}
	s.reportAnswer("server, SIGTERM", "ended")
}

// The public MLflow refuses the entries of leftOut. If it accepts one, remove the entry.
func TestPublicMLflowRejectsOmittedOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rendered, complaint string }{
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
			if err == nil || ctx.Err() != nil || !strings.Contains(string(output), c.complaint) {
				t.Errorf("the server started, or did not print the expected complaint (error %v):\n%s", err, output)
			}
		})
	}
}
