package openshift

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

var (
	openShift = capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup)
	plain     = capability.NewSet(capability.ServiceMonitor)
)

// inputs returns the inputs of a namespace with models, runtimes and changed default settings.
func inputs(served capability.Set, changes ...func(*meshsettings.Settings)) Inputs {
	s := meshsettings.Default()
	for _, change := range changes {
		change(&s)
	}
	return Inputs{
		Namespace: "team", Settings: s, MonitoringNamespace: "monitoring", InUse: true, HasRuntimes: true,
		Account: authproxy.ServiceAccountName(s, served), Proxy: authproxy.Decide(s, "team", served),
		Cookie: []byte("c2VhbA=="),
	}
}

func authProxyAlways(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyAlways }

// renderObjects returns the objects as they are applied.
func renderObjects(t *testing.T, in Inputs) []*unstructured.Unstructured {
	t.Helper()
	owner := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid"}}
	objects, err := apply.Render(allDesired(in), modelmesh.ComponentName, owner)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// allDesired returns the desired objects and the certificates.
func allDesired(in Inputs) apply.Desired {
	desired := desiredObjects(in)
	for _, c := range in.certificates() {
		desired = append(desired, c.Secret(map[string][]byte{"tls.crt": []byte("certificate"), "tls.key": []byte("key"), "ca.crt": []byte("ca")}))
	}
	return desired
}

// namesOf returns "Kind name" of each object, sorted.
func namesOf(objects []*unstructured.Unstructured) []string {
	var kindsAndNames []string
	for _, o := range objects {
		kindsAndNames = append(kindsAndNames, o.GetKind()+" "+o.GetName())
	}
	slices.Sort(kindsAndNames)
	return kindsAndNames
}

// [O5] On OpenShift an enabled namespace has a ServiceAccount, its binding, a cookie key, and a RoleBinding for the platform's Prometheus.
func TestDesiredObjects(t *testing.T) {
	entries := map[string][]byte{"aws": []byte(`{"type":"s3"}`)}
	for name, in := range map[string]Inputs{
		"openshift": inputs(openShift),
		"openshift_storage": func() Inputs {
			in := inputs(openShift)
			in.StorageData = entries
			return in
		}(),
		"openshift_custom_settings": inputs(openShift, func(s *meshsettings.Settings) {
			s.ServiceAccountName, s.ServicePort, s.RESTProxy.Port, s.Metrics.Enabled = "runner", 9033, 9008, false
		}),
		"plain":       inputs(plain),
		"plain_proxy": inputs(plain, authProxyAlways),
	} {
		t.Run(name, func(t *testing.T) {
			framework.Golden(t, filepath.Join("testdata", "golden", name+".yaml"), renderObjects(t, in))
		})
	}
}

func TestGoldenFilesAreUsed(t *testing.T) {
	files, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil || len(files) != 5 {
		t.Errorf("%d golden files, error %v, want the 5 of TestDesiredObjects", len(files), err)
	}
}

// The desired objects depend on the platform, models, runtimes, storage data, the ServiceAccount, the sidecar and the
// namespace of Prometheus.
func TestDesiredObjectsByInputs(t *testing.T) {
	prometheus := "RoleBinding prometheus-ns-access"
	account, delegator := "ServiceAccount modelmesh-serving-sa", "ClusterRoleBinding team-modelmesh-serving-sa-auth-delegator"
	cookie, entries := "Secret model-serving-proxy-cookie", "Secret storage-config"
	storageData := map[string][]byte{"a": []byte("{}")}
	for name, c := range map[string]struct {
		served capability.Set
		change func(*Inputs)
		want   []string
	}{
		"all objects":                  {openShift, func(in *Inputs) { in.StorageData = storageData }, []string{prometheus, account, delegator, cookie, entries}},
		"neither models nor pods":      {openShift, func(in *Inputs) { in.InUse, in.StorageData = false, storageData }, []string{prometheus}},
		"neither models nor runtimes":  {openShift, func(in *Inputs) { in.InUse, in.HasRuntimes = false, false }, nil},
		"models without runtimes":      {openShift, func(in *Inputs) { in.HasRuntimes = false }, []string{account, delegator, cookie}},
		"no monitoring":                {openShift, func(in *Inputs) { in.MonitoringNamespace = "" }, []string{account, delegator, cookie}},
		"custom ServiceAccount":        {openShift, func(in *Inputs) { in.Account = "runner" }, []string{prometheus, delegator, cookie}},
		"no sidecar":                   {openShift, func(in *Inputs) { in.Proxy = nil }, []string{prometheus, account}},
		"Kubernetes":                   {plain, func(*Inputs) {}, []string{prometheus}},
		"Kubernetes, data connections": {plain, func(in *Inputs) { in.StorageData = storageData }, []string{prometheus, entries}},
		"Kubernetes, proxy enabled":    {plain, func(in *Inputs) { *in = inputs(plain, authProxyAlways) }, []string{"Secret model-serving-proxy-tls", prometheus, account, delegator}},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(c.served)
			c.change(&in)
			slices.Sort(c.want)
			if got := namesOf(renderObjects(t, in)); !slices.Equal(got, c.want) {
				t.Errorf("objects %q\nwant %q", got, c.want)
			}
		})
	}
}

// The BackendTLSPolicy selects only the Service port of the sidecar.
func TestBackendTLSPolicySelectsProxyPort(t *testing.T) {
	in := inputs(plain, authProxyAlways)
	in.CABundle = []byte("PEM")
	for _, o := range renderObjects(t, in) {
		if o.GetKind() != capability.BackendTLSPolicy.Kind {
			continue
		}
		targets, _, _ := unstructured.NestedSlice(o.Object, "spec", "targetRefs")
		if diff := cmp.Diff([]any{map[string]any{"group": "", "kind": "Service", "name": "modelmesh-serving", "sectionName": "https"}}, targets); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if host, _, _ := unstructured.NestedString(o.Object, "spec", "validation", "hostname"); host != "modelmesh-serving.team.svc" {
			t.Errorf("hostname %s, want %s", host, "modelmesh-serving.team.svc")
		}
		return
	}
	t.Error("the BackendTLSPolicy was not built")
}

// possibleObjects contains every desired object except the storage Secret: other objects would never be deleted.
func TestPossibleObjectsIncludeDesiredObjects(t *testing.T) {
	possible := map[apply.Key]bool{}
	for _, key := range possibleObjects("team", capability.NewSet(capability.BackendTLSPolicy)) {
		possible[key] = true
	}
	desired := map[apply.Key]bool{}
	for _, in := range []Inputs{inputs(openShift), inputs(plain, authProxyAlways)} {
		in.CABundle = []byte("PEM")
		for _, o := range allDesired(in) {
			key := o.Key()
			if !possible[key] {
				t.Errorf("%s %s is never deleted", key.Kind, key.NamespacedName)
			}
			desired[key] = true
		}
	}
	if len(desired) != len(possible) {
		t.Errorf("%d possible objects, %d desired objects, want the same number", len(possible), len(desired))
	}
}

// A storage Secret of a user or of the legacy controller is adopted; a data connection of that name is not.
func TestIsStorageSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"storage Secret":  {map[string]string{LabelManaged: "true"}, true},
		"data connection": {map[string]string{LabelManaged: "true", LabelDashboard: "true"}, false},
		"another Secret":  {nil, false},
	} {
		secret := &unstructured.Unstructured{}
		secret.SetLabels(tc.labels)
		if got := isStorageSecret(secret); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
