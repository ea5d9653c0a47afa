package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/mlflowtest"
)

// typed returns a built object as a Go type. Unknown fields are errors.
func typed[T any](t testing.TB, m *mlflowv1.MLflow, in Inputs, kind, name string) *T {
	t.Helper()
	o := mlflowtest.Object(buildObjects(t, m, in), kind, name)
	if o == nil {
		t.Fatalf("no %s %s was built", kind, name)
		return nil
	}
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, into, true); err != nil {
		t.Fatalf("reading %s %s: %v", kind, name, err)
	}
	return into
}

func deploymentOf(t testing.TB, m *mlflowv1.MLflow, in Inputs) *appsv1.Deployment {
	t.Helper()
	return typed[appsv1.Deployment](t, m, in, "Deployment", NameOf(m))
}

func podOf(t testing.TB, m *mlflowv1.MLflow, in Inputs) corev1.PodSpec {
	t.Helper()
	return deploymentOf(t, m, in).Spec.Template.Spec
}

func TestBuildReturnsObjectsInFixedOrder(t *testing.T) {
	m := mlflowtest.MLflow(mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{}))
	want := []string{
		"ServiceAccount/mlflow-sa", "ClusterRole/mlflow", "ClusterRoleBinding/mlflow", "PersistentVolumeClaim/mlflow-pvc",
		"NetworkPolicy/mlflow", "NetworkPolicy/mlflow-migration", "Deployment/mlflow", "Service/mlflow",
		"ServiceMonitor/mlflow-metrics-monitor", "HTTPRoute/mlflow", "ConsoleLink/mlflow",
	}
	for range 20 { // [D21] the order is deterministic
		var got []string
		for _, o := range buildObjects(t, m, platformInputs["openshift"]) {
			got = append(got, o.GetKind()+"/"+o.GetName())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("order (-want +got):\n%s", diff)
		}
	}
}

func TestOptionalObjects(t *testing.T) {
	for name, c := range map[string]struct {
		in   Inputs
		want []string
	}{
		"bare":      {platformInputs["bare"], nil},
		"plain":     {platformInputs["plain"], []string{"ServiceMonitor", "HTTPRoute"}},
		"openshift": {platformInputs["openshift"], []string{"ServiceMonitor", "HTTPRoute", "ConsoleLink"}},
		"[D29] no link without an external URL": {with(platformInputs["openshift"], func(in *Inputs) { in.ExternalURL = "" }),
			[]string{"ServiceMonitor", "HTTPRoute"}},
		"[D31] OpenShift without console": {with(platformInputs["openshift"], func(in *Inputs) { in.Served = capability.NewSet(capability.HTTPRoute, capability.ServiceMonitor) }),
			[]string{"ServiceMonitor", "HTTPRoute"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range buildObjects(t, mlflowtest.MLflow(), c.in) {
				switch o.GetKind() {
				case "ServiceMonitor", "HTTPRoute", "ConsoleLink":
					got = append(got, o.GetKind())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("optional objects (-want +got):\n%s", diff)
			}
		})
	}
}

func with(in Inputs, change func(*Inputs)) Inputs {
	change(&in)
	return in
}

func TestObjectsHaveLabelsAndOwners(t *testing.T) {
	m := mlflowtest.MLflow(mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{}))
	for _, o := range buildObjects(t, m, platformInputs["openshift"]) {
		if o.GetLabels()[names.OperatorLabel] != names.OperatorName || o.GetLabels()[names.ComponentLabel] != "mlflow" {
			t.Errorf("%s %s lacks the common labels: %v", o.GetKind(), o.GetName(), o.GetLabels())
		}
		owners := o.GetOwnerReferences()
		switch o.GetKind() {
		case "PersistentVolumeClaim":
			if len(owners) != 0 {
				t.Errorf("[D23] the claim has an owner: %v", owners)
			}
		case "ClusterRole", "ClusterRoleBinding":
			if len(owners) != 1 || owners[0].Controller != nil && *owners[0].Controller {
				t.Errorf("%s is shared: got owners %v, want one that is not the controller", o.GetKind(), owners)
			}
		default:
			if !metav1.IsControlledBy(o, m) {
				t.Errorf("%s %s is not controlled by its MLflow", o.GetKind(), o.GetName())
			}
		}
		for _, kind := range []string{"HTTPRoute", "ConsoleLink"} {
			if o.GetKind() == kind && (o.GetLabels()[LabelApp] != "mlflow" || o.GetLabels()[LabelComponent] != "") {
				t.Errorf("%s has labels %v", kind, o.GetLabels())
			}
		}
	}
}

func TestNames(t *testing.T) {
	t.Run("[mlflow-25] namespace and suffix", func(t *testing.T) {
		m := withName(mlflowtest.MLflow(mlflowtest.WithStorage(corev1.PersistentVolumeClaimSpec{})), "team")
		in := with(platformInputs["openshift"], func(in *Inputs) { in.Namespace = "tracking" })
		want := []string{
			"tracking/mlflow-sa", "/mlflow", "/mlflow", "tracking/mlflow-pvc-team", "tracking/mlflow-team",
			"tracking/mlflow-team-migration", "tracking/mlflow-team", "tracking/mlflow-team",
			"tracking/mlflow-metrics-monitor-team", "tracking/mlflow-team", "/mlflow-team",
		}
		var got []string
		for _, o := range buildObjects(t, m, in) {
			got = append(got, o.GetNamespace()+"/"+o.GetName())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	})
	t.Run("[mlflow-24] the shared ClusterRole keeps its name and can read Secrets of two names", func(t *testing.T) {
		for _, name := range []string{"mlflow", "team"} {
			m := withName(mlflowtest.MLflow(func(s *mlflowv1.MLflowSpec) { s.ServiceAccountName = "runner" }), name)
			role := typed[rbacv1.ClusterRole](t, m, platformInputs["bare"], "ClusterRole", "mlflow")
			read := []string{"get", "list", "watch"}
			want := []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: read},
				{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mlflow-artifact-connection", "mlflow-archive-secret"}, Verbs: read},
				{APIGroups: []string{"mlflow.kubeflow.org"}, Resources: []string{"mlflowconfigs"}, Verbs: read},
			}
			if diff := cmp.Diff(want, role.Rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			binding := typed[rbacv1.ClusterRoleBinding](t, m, platformInputs["bare"], "ClusterRoleBinding", "mlflow")
			subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "runner", Namespace: "opendatahub"}}
			if diff := cmp.Diff(subjects, binding.Subjects); diff != "" {
				t.Errorf("subjects (-want +got):\n%s", diff)
			}
		}
	})
}

func TestURLs(t *testing.T) {
	plain := platformInputs["plain"]
	for name, c := range map[string]struct {
		name string
		in   Inputs
		want string
	}{
		"[mlflow-34] configured":                   {"mlflow", plain, "https://gateway.apps.example.com/mlflow"},
		"[mlflow-34] suffix":                       {"team", plain, "https://gateway.apps.example.com/mlflow-team"},
		"[mlflow-34] trailing slashes are removed": {"mlflow", with(plain, func(in *Inputs) { in.ExternalURL = "https://a.example.com//" }), "https://a.example.com/mlflow"},
		"[mlflow-34] keeps the base path":          {"mlflow", with(plain, func(in *Inputs) { in.ExternalURL = "https://a.example.com/base/" }), "https://a.example.com/base/mlflow"},
		"[mlflow-34] no base URL":                  {"mlflow", with(plain, func(in *Inputs) { in.ExternalURL = "" }), ""},
		"[mlflow-34] no routes":                    {"mlflow", platformInputs["bare"], ""},
		"[mlflow-34] example host configured":      {"mlflow", with(plain, func(in *Inputs) { in.ExternalURL = "https://mlflow.example.com" }), "https://mlflow.example.com/mlflow"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ExternalURL(withName(mlflowtest.MLflow(), c.name), c.in); got != c.want {
				t.Errorf("ExternalURL = %q, want %q", got, c.want)
			}
		})
	}
	t.Run("[mlflow-34] address", func(t *testing.T) {
		if got := AddressURL(mlflowtest.MLflow(), plain); got != "https://mlflow.opendatahub.svc:8443/mlflow" {
			t.Errorf("AddressURL = %q", got)
		}
		if got := AddressURL(withName(mlflowtest.MLflow(), "team"), plain); got != "https://mlflow-team.opendatahub.svc:8443/mlflow" {
			t.Errorf("AddressURL with suffix = %q", got)
		}
		if got := AddressURL(mlflowtest.MLflow(), Inputs{}); got != "" {
			t.Errorf("AddressURL without namespace = %q", got)
		}
	})
	t.Run("[D29] one slash in the console link", func(t *testing.T) {
		in := with(platformInputs["openshift"], func(in *Inputs) { in.ExternalURL = "https://a.example.com/" })
		link := mlflowtest.Object(buildObjects(t, mlflowtest.MLflow(), in), "ConsoleLink", "mlflow")
		href, _, _ := unstructured.NestedString(link.Object, "spec", "href")
		if href != "https://a.example.com/mlflow" {
			t.Errorf("href = %q", href)
		}
		image, _, _ := unstructured.NestedString(link.Object, "spec", "applicationMenu", "imageURL")
		if !strings.HasPrefix(image, "data:image/svg+xml;base64,") {
			t.Errorf("imageURL = %q", image)
		}
	})
}

func TestBuildErrors(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*mlflowv1.MLflowSpec)
		want   string
	}{
		"[mlflow-11] unknown selector operator": {func(s *mlflowv1.MLflowSpec) {
			s.WorkspaceLabelSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Around"}}}
		}, "workspaceLabelSelector"},
		"backend selector without key": {func(s *mlflowv1.MLflowSpec) {
			s.BackendStoreURIFrom = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}
		}, "backendStoreUriFrom must include non-empty 'name' and 'key'"},
		"replica selector without name": {func(s *mlflowv1.MLflowSpec) {
			s.ReadReplicaBackendStoreURIFrom = &corev1.SecretKeySelector{Key: "uri"}
		}, "readReplicaBackendStoreUriFrom must include non-empty 'name' and 'key'"},
		"control character in the archival configuration": {func(s *mlflowv1.MLflowSpec) {
			s.TraceArchival = &mlflowv1.TraceArchivalConfig{Enabled: true, Location: "s3://a\u008d"}
		}, "encoding spec.traceArchival"},
		"registry selector without name": {func(s *mlflowv1.MLflowSpec) {
			s.RegistryStoreURIFrom = &corev1.SecretKeySelector{Key: "uri"}
		}, "registryStoreUriFrom must include non-empty 'name' and 'key'"},
	} {
		t.Run(name, func(t *testing.T) {
			desired, err := Build(mlflowtest.MLflow(c.change), platformInputs["plain"])
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
			if desired != nil {
				t.Error("Build returned objects and an error")
			}
		})
	}
}
