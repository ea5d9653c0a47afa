package resources

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// Each file of testdata/recordings holds a registry and the objects that the legacy operator, at its snapshot of April 2026, created for it
// on Kubernetes 1.36.3, as returned by the API server. The first line names the platform.

// defaultedFields matches fields that the API server defaults and builders omit.
var defaultedFields = regexp.MustCompile(strings.Join([]string{
	`^Deployment/.*\.spec\.(progressDeadlineSeconds|revisionHistoryLimit|strategy\..*)$`,
	`^Deployment/.*\.template\.spec\.(dnsPolicy|restartPolicy|schedulerName|serviceAccount|terminationGracePeriodSeconds)$`,
	`^Deployment/.*\.(imagePullPolicy|terminationMessagePath|terminationMessagePolicy|successThreshold|scheme)$`,
	`^Deployment/.*\.configMap\.defaultMode$`,
	`^Service/.*\.spec\.(clusterIPs?|internalTrafficPolicy|ipFamil.*|sessionAffinity|type)(\[0\])?$`,
	`^Service/.*\.targetPort$`,
	`^PersistentVolumeClaim/.*\.(volumeMode|storageClassName|finalizers\[0\])$`,
	`^Route/.*\.(weight|wildcardPolicy)$`,
	`^Group/.*\.users$`,
}, "|"))

// intendedDifferences are the differences to the recordings that are intended.
var intendedDifferences = []struct {
	path   *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`\.metadata\.labels\.platform\.opendatahub\.io/(operator|component)$`), "labels of all objects of this operator"},
	{regexp.MustCompile(`^NetworkPolicy/.*-ingress\b`), "[S1] the port of the server is closed whenever there is a proxy"},
	{regexp.MustCompile(`^NetworkPolicy/.*-egress\b`), "newer than the recording"},
	{regexp.MustCompile(`^Deployment/.*\.containers\[0\]\.(args\[0\]|(liveness|readiness|startup)Probe\.httpGet\.(port|scheme))$`), "[S1] behind a proxy the server listens on loopback, and probes come through the proxy"},
	{regexp.MustCompile(`^Deployment/.*\.containers\[1\]\.args\[8\]$`), "[S1] the proxy lets probes pass"},
	{regexp.MustCompile(`^Deployment/.*\.startupProbe\.failureThreshold$`), "[W11] a server that waits for its database is not killed"},
	{regexp.MustCompile(`^Role/.*\.rules\[0\]\.verbs\[1\]$`), "[S4] earlier proxies check the verb create for POST requests"},
	{regexp.MustCompile(`\.automountServiceAccountToken$`), "[S7] no token where none is needed"},
	{regexp.MustCompile(`^Deployment/.*\.containers\[1\]\.securityContext\.`), "[S7] the proxy meets restricted Pod Security"},
	{regexp.MustCompile(`^Deployment/.*\.template\.spec\.securityContext\.fsGroup`), "[S7] on plain Kubernetes a pod that does not run as root can read its Secrets only through a group"},
	{regexp.MustCompile(`^(Route/.*-https|Service/.*)\.metadata\.annotations\.routing`), "in gateway mode: only existing addresses"},
	{regexp.MustCompile(`^(ReferenceGrant|HTTPRoute)/`), "newer than the recording; [D26] one grant for each registry"},
	{regexp.MustCompile(`^NetworkPolicy/.*-https-route\.spec\.ingress\[0\]\.from\[1\]`), "namespaces of the platform, newer than the recording"},
	{regexp.MustCompile(`^ConfigMap/.*\.labels\.app\.kubernetes\.io/instance$`), "the labels of the registry itself"},
	{regexp.MustCompile(`^ConfigMap/.*\.data\.config-file\.yaml$`), "the same file with its keys in another order, see TestProxyConfig"},
	{regexp.MustCompile(`^Group/.*\.labels\.modelregistry`), "[D30] the registry of a cluster-scoped object"},
	{regexp.MustCompile(`^Deployment/.*-postgres\.spec\.strategy\.(type|rollingUpdate\..*)$`), "Recreate, newer than the recording"},
	{regexp.MustCompile(`^Deployment/.*-postgres\.spec\.template\.spec\.(terminationGracePeriodSeconds|containers\[0\]\.(command|lifecycle)\b.*)$`), "[W10] only one server uses the volume, and it stops quickly"},
	{regexp.MustCompile(`^Deployment/secured.*\.env\[2\]\.`), "the server replaces verify-full by require unless MR_EMBEDMD_DATABASE_SSL_VERIFY_SERVER_CERT is true"},
	{regexp.MustCompile(`^(Secret|PersistentVolumeClaim)/.*\.ownerReferences\[0\]`), "data is kept when its registry is deleted"},
	{regexp.MustCompile(`^Secret/.*\.data\.`), "the recording masks it, see TestCredentials"},
}

// gatewaySettings holds the settings of recordings with a gateway, by name.
var gatewaySettings = map[string]config.RegistryGateway{
	"gateway-mode-openshift": {
		Domain: "https://gateway.apps.lab.example.com", Name: "data-science-gateway", Namespace: "openshift-ingress", RouteNamespace: "redhat-ods-applications",
	},
}

type recording struct {
	name    string
	in      Inputs
	stored  *v1beta1.ModelRegistry
	objects []*unstructured.Unstructured
}

func readRecordings(t *testing.T) []recording {
	t.Helper()
	files, err := filepath.Glob("testdata/recordings/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	var all []recording
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := framework.ReadObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects[1:] {
			moveDSN(t, o)
		}
		r := recording{name: strings.TrimSuffix(filepath.Base(file), ".yaml"), stored: &v1beta1.ModelRegistry{}, objects: objects[1:]}
		if strings.HasPrefix(string(text), "# openshift\n") {
			r.in = openshift
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[0].Object, r.stored, true); err != nil {
			t.Fatalf("decoding the registry of %s: %v", file, err)
		}
		r.stored.UID = "7f0c2f5e-0000-4000-8000-000000000001"
		r.in.Gateway = gatewaySettings[r.name]
		proxy := r.stored.Spec.KubeRBACProxy
		r.in.HasCustomDomain = proxy != nil && proxy.Domain != ""
		r.in.RequestCertificate = proxy != nil && proxy.TLSCertificateSecret == nil
		all = append(all, r)
	}
	return all
}

// moveDSN moves the URL of the database from the arguments of a recorded server to the variable that this operator uses.
func moveDSN(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	if len(containers) == 0 {
		return
	}
	server := containers[0].(map[string]any)
	args, _ := server["args"].([]any)
	index := slices.IndexFunc(args, func(a any) bool { return strings.HasPrefix(a.(string), "--embedmd-database-dsn=") })
	if index < 0 {
		return
	}
	env, _ := server["env"].([]any)
	password := slices.IndexFunc(env, func(e any) bool { return strings.HasSuffix(e.(map[string]any)["name"].(string), "_PASSWORD") })
	variable := map[string]any{"name": EnvDSN, "value": strings.TrimPrefix(args[index].(string), "--embedmd-database-dsn=")}
	server["env"], server["args"] = slices.Insert(env, password+1, any(variable)), slices.Delete(args, index, index+1)
	if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}

// withDefaults returns the registry with the defaults of the legacy operator from its status.
func (r recording) withDefaults(t *testing.T) *v1beta1.ModelRegistry {
	t.Helper()
	stored, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.stored.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var patch map[string]any
	if err := json.Unmarshal([]byte(r.stored.Status.SpecDefaults), &patch); err != nil {
		t.Fatal(err)
	}
	m := r.stored.DeepCopy()
	m.Spec = v1beta1.ModelRegistrySpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(mergePatch(stored, patch), &m.Spec, true); err != nil {
		t.Fatal(err)
	}
	return m
}

// mergePatch returns the object after a JSON merge patch (RFC 7396).
func mergePatch(object, patch map[string]any) map[string]any {
	if object == nil {
		object = map[string]any{}
	}
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(object, key)
		case isObject:
			old, _ := object[key].(map[string]any)
			object[key] = mergePatch(old, inner)
		default:
			object[key] = value
		}
	}
	return object
}

func (r recording) generatesDatabase() bool {
	p := r.stored.Spec.Postgres
	return p != nil && p.GenerateDeployment != nil && *p.GenerateDeployment
}

// TestRecordings compares the builders with the legacy operator, field by field.
func TestRecordings(t *testing.T) {
	matched := map[int]bool{}
	for _, r := range readRecordings(t) {
		t.Run(r.name, func(t *testing.T) {
			m := r.withDefaults(t)
			desired := buildObjects(t, m, r.in)
			if r.generatesDatabase() {
				m.Spec.Postgres.Image = "quay.io/example/postgresql:16"
				desired = append(desired, buildDatabaseObjects(t, m, r.in)...)
			}
			for _, d := range framework.Differences(framework.Leaves(r.objects), framework.Leaves(desired), defaultedFields) {
				index := slices.IndexFunc(intendedDifferences, func(a struct {
					path   *regexp.Regexp
					reason string
				}) bool {
					return a.path.MatchString(d.Path)
				})
				if index < 0 {
					t.Errorf("%s differs from the recording: %s -> %s", d.Path, d.Recorded, d.Built)
				}
				matched[index] = true
			}
		})
	}
	for i, a := range intendedDifferences {
		if !matched[i] {
			t.Errorf("no recording differs in %s: remove it from intendedDifferences", a.path)
		}
	}
}

// Hosts and defaults in the status are those of the legacy operator, except the hosts of a gateway. [D22]
func TestRecordedStatus(t *testing.T) {
	intended := map[string]string{
		"gateway-mode-openshift": "hosts of the gateway, newer than the recording",
	}
	for _, r := range readRecordings(t) {
		got := Hosts(r.withDefaults(t), r.in)
		if _, differs := intended[r.name]; slices.Equal(got, r.stored.Status.Hosts) == differs {
			t.Errorf("%s: got hosts %q, recorded %q, intended difference: %t", r.name, got, r.stored.Status.Hosts, differs)
		}
		if defaults := SpecDefaults(&r.stored.Spec, &r.withDefaults(t).Spec); defaults != r.stored.Status.SpecDefaults {
			t.Errorf("%s: defaults %s, recorded %s", r.name, defaults, r.stored.Status.SpecDefaults)
		}
	}
}
