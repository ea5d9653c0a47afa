package render

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

// outcome is the result of a run of the command.
type outcome struct {
	code           int
	stdout, stderr string
}

// output is the structured output.
type output struct {
	Kind  string
	Items []any
	Notes []string
}

// run runs the command with an input and an optional cluster.
func run(t *testing.T, stdin string, cluster *cli.Cluster, args ...string) outcome {
	t.Helper()
	var out, errs strings.Builder
	o := cli.NewOptions("v9")
	o.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errs}
	o.Lookup = func(string) (string, bool) { return "", false }
	o.Connect = func() (*cli.Cluster, error) {
		if cluster == nil {
			return nil, errors.New("no cluster")
		}
		return cluster, nil
	}
	code := cli.Run(t.Context(), o, append([]string{"render"}, args...), []cli.Command{Command})
	return outcome{code, out.String(), errs.String()}
}

const wrapper = `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {name: a}, spec: {components: [{template: {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}}]}}`

const mlflow = `{apiVersion: mlflow.opendatahub.io/v1, kind: MLflow, metadata: {name: mlflow}, spec: {storage: {resources: {requests: {storage: 1Gi}}}, backendStoreUri: "sqlite:////mlflow/a.db", artifactsDestination: "file:///mlflow/artifacts"}}`

func TestFromPlatform(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte(wrapper), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"file": {"-f", file, "-n", "team"}, "stdin": {"-f", "-", "-n", "team"}} {
		s := run(t, wrapper, nil, args...)
		if s.code != 0 || !strings.Contains(s.stdout, "kind: Pod\n") || !strings.Contains(s.stdout, "  namespace: team\n") {
			t.Errorf("%s: got %+v, want a Pod in namespace team", name, s)
		}
	}
	predictor := `{apiVersion: serving.kserve.io/v1alpha1, kind: Predictor, metadata: {name: m}, spec: {modelType: {name: onnx}, storage: {path: p}}}`
	s := run(t, predictor, nil, "-f", "-")
	if s.code != 0 || !strings.Contains(s.stdout, "\n# type: mt:onnx\n") || !strings.Contains(s.stdout, "namespace default") {
		t.Errorf("got %+v, want the registration of the model in namespace default", s)
	}
	s = run(t, wrapper+"\n---\n"+predictor, nil, "-f", "-", "-o", "json")
	var l output
	if err := json.Unmarshal([]byte(s.stdout), &l); err != nil || len(l.Items) != 1 || len(l.Notes) != 2 || l.Kind != "List" {
		t.Errorf("got %+v and error %v, want a List with one item and two notes", s, err)
	}
	s = run(t, mlflow, nil, "-f", "-", "--platform", "bare", "--", "--namespace=tracking")
	if s.code != 0 || !strings.Contains(s.stdout, "namespace: tracking") || strings.Contains(s.stdout, "ServiceMonitor") {
		t.Errorf("got %+v, want namespace tracking and no ServiceMonitor", s)
	}
}

func TestRenderRejectsInvalidInput(t *testing.T) {
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"no file":              {wrapper, nil, `"filename" not set`},
		"missing file":         {"", []string{"-f", "gone.yaml"}, "gone.yaml"},
		"empty input":          {"", []string{"-f", "-"}, "no custom resource"},
		"no cluster":           {wrapper, []string{"-f", "-", "--cluster"}, "no cluster"},
		"unknown kind":         {"{apiVersion: v1, kind: Pod}", []string{"-f", "-"}, "known kinds: aihub.opendatahub.io/v1alpha1/Catalog"},
		"unknown platform":     {wrapper, []string{"-f", "-", "--platform", "mars"}, `unknown platform "mars"`},
		"unknown flag":         {wrapper, []string{"-f", "-", "--", "--colour"}, "unknown flag --colour"},
		"flags with --cluster": {wrapper, []string{"-f", "-", "--cluster", "--", "--namespace=a"}, "leave out one of the two"},
	} {
		s := run(t, tc.stdin, nil, tc.args...)
		if s.code != cli.ExitFailed || !strings.Contains(s.stderr, tc.want) {
			t.Errorf("%s: got %+v, want ExitFailed and %q", name, s, tc.want)
		}
	}
}

// fakeCluster returns a cluster with the given objects.
func fakeCluster(t *testing.T, documents ...string) *cli.Cluster {
	t.Helper()
	var lists []*metav1.APIResourceList
	listKinds := map[schema.GroupVersionResource]string{}
	for version, served := range map[string][]string{
		"v1": {"Pod", "ConfigMap", "Namespace"}, "apps/v1": {"Deployment"}, "workload.codeflare.dev/v1beta2": {"AppWrapper"},
		"mlflow.opendatahub.io/v1": {"MLflow"}, "config.openshift.io/v1": {"Ingress"}, "route.openshift.io/v1": {"Route"}, "ray.io/v1": {"RayCluster"},
	} {
		gv, _ := schema.ParseGroupVersion(version)
		l := &metav1.APIResourceList{GroupVersion: version}
		for _, kind := range served {
			plural := strings.ToLower(kind) + "s"
			if strings.HasSuffix(kind, "s") {
				plural = strings.ToLower(kind) + "es"
			}
			l.APIResources = append(l.APIResources, metav1.APIResource{Name: plural, Kind: kind, Namespaced: kind != "MLflow", Verbs: []string{"get", "list"}})
			listKinds[gv.WithResource(plural)] = kind + "List"
		}
		lists = append(lists, l)
	}
	var objects []runtime.Object
	for _, text := range documents {
		u := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = u.UnmarshalJSON(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, u)
	}
	scheme := fakemetadata.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return &cli.Cluster{Namespace: "team", Dynamic: fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds, objects...),
		Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}}, Metadata: fakemetadata.NewSimpleMetadataClient(scheme)}
}

const (
	manager = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: odh, name: odh-platform-operator-controller-manager}, spec: {template: {spec: {containers: [
  {name: manager, image: "x:v7", env: [{name: POD_NAMESPACE, value: odh}, {name: ENABLE_APPWRAPPER, value: "true"}]}]}}}}`
	scheduler  = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: odh, name: appwrapper-operator-config}, data: {config.yaml: "appwrapper: {schedulerName: packed}"}}`
	domain     = `{apiVersion: config.openshift.io/v1, kind: Ingress, metadata: {name: cluster}, spec: {domain: apps.example.org}}`
	rayCluster = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: r}, spec: {headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: h, image: i}]}}}}}`
)

func TestFromCluster(t *testing.T) {
	s := run(t, wrapper, fakeCluster(t, manager, scheduler), "-f", "-", "--cluster")
	if s.code != 0 || !strings.Contains(s.stdout, "schedulerName: packed") || !strings.Contains(s.stdout, "namespace: team") {
		t.Errorf("got %+v, want the scheduler of the installed settings and namespace team", s)
	}
	s = run(t, rayCluster, fakeCluster(t, manager, domain), "-f", "-", "--cluster")
	if s.code != 0 || !strings.Contains(s.stdout, "oauth-proxy") || !strings.Contains(s.stdout, "ray.openshift.ai/version: v7") {
		t.Errorf("got %+v, want the proxy of OpenShift and the version of the manager", s)
	}
	s = run(t, mlflow, fakeCluster(t, manager), "-f", "-", "--cluster")
	if s.code != 0 || !strings.Contains(s.stdout, "# the release of MLflow is assumed to be "+mlflowVersion) {
		t.Errorf("got %+v, want a note about the assumed release of MLflow", s)
	}
	for want, c := range map[string]*cli.Cluster{
		"the Deployment of the manager could not be read": fakeCluster(t, scheduler),
		"cannot be read": fakeCluster(t, strings.Replace(manager, "name: manager,", "name: other,", 1)),
	} {
		if s := run(t, wrapper, c, "-f", "-", "--cluster"); s.code != cli.ExitFailed || !strings.Contains(s.stderr, want) {
			t.Errorf("got %+v, want ExitFailed and %q", s, want)
		}
	}
}

// Unreadable objects are treated as missing and unreadable settings as unset. Both are reported, and the exit code is 3.
func TestFromClusterWithoutPermissions(t *testing.T) {
	withUnreadable := strings.Replace(manager, `{name: POD_NAMESPACE, value: odh}`, `{name: POD_NAMESPACE, value: odh}, {name: ENABLE_MLFLOW, valueFrom: {configMapKeyRef: {name: params, key: m}}}`, 1)
	newCluster := func() *cli.Cluster {
		c := fakeCluster(t, withUnreadable, scheduler)
		forbid(t, c, "get", "configmaps")
		return c
	}
	const settingsNote = "Note: the defaults are assumed for settings of the manager that could not be read: ENABLE_MLFLOW in ConfigMap odh/params\n"
	const configMapNote = "Note: not allowed to get configmaps/appwrapper-operator-config in namespace odh; "
	for _, flags := range []string{"--cluster", "--cluster -o json"} {
		s := run(t, wrapper, newCluster(), append([]string{"-f", "-"}, strings.Fields(flags)...)...)
		if s.code != cli.ExitUnknown || !strings.Contains(s.stderr, settingsNote) || !strings.Contains(s.stderr, configMapNote) || !strings.Contains(s.stderr, "; it is treated as missing\n") {
			t.Errorf("%s: got %+v, want ExitUnknown and notes about both", flags, s)
		}
		if strings.Contains(s.stdout, "schedulerName: packed") {
			t.Errorf("%s: unexpected stdout: %s", flags, s.stdout)
		}
	}
	var l output
	if err := json.Unmarshal([]byte(run(t, wrapper, newCluster(), "-f", "-", "--cluster", "-o", "json").stdout), &l); err != nil || len(l.Items) != 1 ||
		!slices.Contains(l.Notes, strings.TrimSpace(strings.TrimPrefix(settingsNote, "Note: "))) {
		t.Errorf("rendering failed (%v), or a note about the settings is missing: %+v", err, l.Notes)
	}
	if s := run(t, wrapper, fakeCluster(t, manager, scheduler), "-f", "-", "--cluster"); s.stderr != "" {
		t.Errorf("got %s on standard error, want nothing if everything can be read", s.stderr)
	}
	withoutDeployments := fakeCluster(t, manager)
	forbid(t, withoutDeployments, "*", "deployments")
	if s := run(t, wrapper, withoutDeployments, "-f", "-", "--cluster"); s.code != cli.ExitUnknown || !strings.Contains(s.stderr, "not allowed to list deployments.apps in all namespaces; name the namespace of the manager with --manager-namespace, or leave out --cluster") {
		t.Errorf("got %+v, want ExitUnknown and advice to set the namespace of the manager", s)
	}
}

// forbid makes a cluster reject requests.
func forbid(t *testing.T, c *cli.Cluster, verb, resource string) {
	t.Helper()
	dynamic, ok := c.Dynamic.(*fakedynamic.FakeDynamicClient)
	if !ok {
		t.Fatalf("unexpected Dynamic: %T", c.Dynamic)
	}
	dynamic.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no"))
	})
}

// Owner references have the UID of the stored resource, because kubectl diff and kubectl apply need it.
func TestOwnerReferencesHaveStoredUID(t *testing.T) {
	live := `{apiVersion: workload.codeflare.dev/v1beta2, kind: AppWrapper, metadata: {namespace: team, name: a, uid: u-1}}`
	for want, c := range map[string]*cli.Cluster{"uid: u-1\n": fakeCluster(t, manager, scheduler, live), `uid: ""`: fakeCluster(t, manager, scheduler)} {
		if s := run(t, wrapper, c, "-f", "-", "--cluster"); s.code != 0 || !strings.Contains(s.stdout, want) {
			t.Errorf("want %q in the output, got %+v", want, s)
		}
	}
}

// The help lists all kinds of the table.
func TestHelpListsAllKinds(t *testing.T) {
	if !strings.Contains(Command(cli.NewOptions("")).Long, strings.Join(kinds.Table().Names(), "\n  ")) {
		t.Error("the help does not list all kinds")
	}
}
