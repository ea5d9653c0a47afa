package openshift

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

func newPredictor(name string) *v1alpha1.Predictor {
	return &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
}

// objectsWritten returns the objects of the writes with a verb, sorted.
func objectsWritten(writes []string, verb string) []string {
	var objects []string
	for _, w := range writes {
		if object, found := strings.CutPrefix(w, verb+" "); found {
			objects = append(objects, object)
		}
	}
	slices.Sort(objects)
	return objects
}

// The objects are created with the first model. All but the RoleBinding are deleted with the last one. In steady state nothing is written.
func TestCreatesAndDeletesObjectsWithModels(t *testing.T) {
	served := openShift.UnsortedList()
	env := newTestEnv(t, capability.NewSet(append(served, capability.InferenceService)...))
	if writes := env.reconcileNamespace(); len(writes) > 0 {
		t.Fatalf("writes %q for a namespace without models, want none", writes)
	}
	model := newInferenceService("digits")
	env.create(model, newDeployment(0))
	want := []string{
		"ClusterRoleBinding team-modelmesh-serving-sa-auth-delegator", "RoleBinding prometheus-ns-access",
		"Secret model-serving-proxy-cookie", "ServiceAccount modelmesh-serving-sa",
	}
	if got := objectsWritten(env.reconcileNamespace(), "apply"); !slices.Equal(got, want) {
		t.Fatalf("created %q, want %q", got, want)
	}
	var cookie corev1.Secret
	if !env.exists(&cookie, "model-serving-proxy-cookie") || len(cookie.Data["cookie_secret"]) != 44 {
		t.Errorf("cookie Secret %q, want a key of 44 bytes", cookie.Data)
	}
	env.expectNoRequests("with a model", env.reconcileNamespace)
	env.remove(model)
	if got := objectsWritten(env.reconcileNamespace(), "delete"); !slices.Equal(got, []string{
		"ClusterRoleBinding team-modelmesh-serving-sa-auth-delegator", "Secret model-serving-proxy-cookie", "ServiceAccount modelmesh-serving-sa",
	}) {
		t.Errorf("deleted %q, want the objects of models", got)
	}
	env.expectNoRequests("without models", env.reconcileNamespace)
	env.enabled = false
	if got := objectsWritten(env.reconcileNamespace(), "delete"); !slices.Equal(got, []string{"RoleBinding prometheus-ns-access"}) {
		t.Errorf("disabled namespace: deleted %q, want %q", got, []string{"RoleBinding prometheus-ns-access"})
	}
	env.expectNoRequests("disabled namespace", env.reconcileNamespace)
}

type usage struct{ inUse, hasRuntimes bool }

func (env *testEnv) usage(namespace string) (usage, error) {
	inUse, hasRuntimes, err := env.namespaces.getUsage(env.t.Context(), namespace)
	return usage{inUse, hasRuntimes}, err
}

// [O5] [O9] A namespace is in use as long as it has pods, which need their ServiceAccount, or models, including Predictors.
func TestNamespaceUsage(t *testing.T) {
	otherMode := newInferenceService("raw", func(s *v1beta1.InferenceService) { s.Annotations = nil })
	for name, c := range map[string]struct {
		existing []client.Object
		want     usage
	}{
		"no models":                        {nil, usage{}},
		"Predictor":                        {[]client.Object{newPredictor("p")}, usage{inUse: true}},
		"InferenceService":                 {[]client.Object{newInferenceService("i")}, usage{inUse: true}},
		"InferenceService of another mode": {[]client.Object{otherMode}, usage{}},
		"runtime without pods":             {[]client.Object{newDeployment(0)}, usage{hasRuntimes: true}},
		"runtime with pods":                {[]client.Object{newDeployment(1)}, usage{inUse: true, hasRuntimes: true}},
		"runtime with terminating pods": {[]client.Object{func() client.Object {
			d := newDeployment(0)
			d.Status.Replicas = 1
			return d
		}()}, usage{inUse: true, hasRuntimes: true}},
		"foreign Deployment": {[]client.Object{func() client.Object {
			d := newDeployment(1)
			d.Labels = nil
			return d
		}()}, usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, capability.NewSet(capability.InferenceService), c.existing...)
			got, err := env.usage("team")
			if err != nil || got != c.want {
				t.Errorf("%+v, error %v; want %+v", got, err, c.want)
			}
			if got, err := env.usage("other"); err != nil || got != (usage{}) {
				t.Errorf("other namespace: %+v, error %v", got, err)
			}
		})
	}
	env := newTestEnv(t, plain, newInferenceService("i"))
	if got, err := env.usage("team"); err != nil || got.inUse {
		t.Errorf("InferenceService API not served: %+v, error %v", got, err)
	}
}

func storageEntries(t *testing.T, env *testEnv) map[string]map[string]string {
	t.Helper()
	var secret corev1.Secret
	if !env.exists(&secret, "storage-config") {
		return nil
	}
	if secret.Labels[LabelManaged] != "true" {
		t.Errorf("labels %v", secret.Labels)
	}
	entries := map[string]map[string]string{}
	for key, value := range secret.Data {
		fields := map[string]string{}
		if err := json.Unmarshal(value, &fields); err != nil {
			t.Fatal(err)
		}
		entries[key] = fields
	}
	return entries
}

// storage-config contains the current data connections and CAs. In steady state nothing is read.
func TestStorageFollowsConnections(t *testing.T) {
	a, b := newConnection("a", "s3", s3Data("https://s3")), newConnection("b", "s3", s3Data("http://minio:9000"))
	env := newTestEnv(t, plain, newPredictor("p"), &a)
	env.reconcileNamespace()
	if got := storageEntries(t, env); len(got) != 1 || got["a"]["certificate"] != "" {
		t.Fatalf("entries %v", got)
	}
	env.reconcileNamespace() // reads the written Secret
	env.expectNoRequests("one connection", env.reconcileNamespace)
	bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: BundleConfigMap}, Data: map[string]string{BundleKey: "PEM"}}
	env.create(&b, bundle)
	env.reconcileNamespace()
	if got := storageEntries(t, env); len(got) != 2 || got["a"]["certificate"] != "PEM" || got["b"]["endpoint_url"] != "http://minio:9000" {
		t.Errorf("entries %v", got)
	}
	env.reconcileNamespace()
	env.expectNoRequests("two connections", env.reconcileNamespace)
	b.Data["AWS_S3_BUCKET"] = []byte("others")
	env.update(&b)
	env.reconcileNamespace()
	if got := storageEntries(t, env); got["b"]["bucket"] != "others" {
		t.Errorf("entries %v", got)
	}
	var tampered corev1.Secret
	env.exists(&tampered, "storage-config")
	tampered.Data["a"] = []byte("{}")
	env.update(&tampered)
	env.reconcileNamespace()
	if got := storageEntries(t, env); got["a"]["bucket"] != "models" {
		t.Errorf("entries %v after a change by another client, want those of the connections", got)
	}
	env.remove(&a)
	env.reconcileNamespace()
	if got := storageEntries(t, env); len(got) != 1 {
		t.Errorf("entries %v", got)
	}
	env.remove(&b)
	if got := env.reconcileNamespace(); !slices.Equal(got, []string{"delete Secret storage-config"}) {
		t.Errorf("without connections: writes %q, want %q", got, []string{"delete Secret storage-config"})
	}
}

// Entries that no Secret can hold are reported once, and the Secret does not change.
func TestReportsStorageEntriesThatAreTooLarge(t *testing.T) {
	bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: BundleConfigMap}, Data: map[string]string{BundleKey: strings.Repeat("x", 600<<10)}}
	a, b := newConnection("a", "s3", s3Data("https://s3")), newConnection("b", "s3", s3Data("https://s3"))
	for name, reconciledBefore := range map[string]bool{"no Secret": false, "Secret with one entry": true} {
		env := newTestEnv(t, plain, newPredictor("p"), a.DeepCopy(), bundle.DeepCopy())
		if reconciledBefore {
			env.reconcileNamespace()
			env.reconcileNamespace()
		}
		env.create(b.DeepCopy())
		if writes := env.reconcileNamespace(); len(writes) > 0 {
			t.Errorf("%s: writes %q, want none", name, writes)
		}
		if got := env.takeEvents(); strings.Count(got, ReasonNotApplied) != 1 || !strings.Contains(got, "the entries of 2 data connections have 12") || !strings.Contains(got, "remove data connections") {
			t.Errorf("%s: Events %q, want one that names the cure", name, got)
		}
		env.expectNoRequests(name, env.reconcileNamespace)
		env.remove(b.DeepCopy())
		env.reconcileNamespace()
		if got := storageEntries(t, env); len(got) != 1 || env.takeEvents() != "" {
			t.Errorf("%s: entries of %d connections after one was removed, want one and no Event", name, len(got))
		}
	}
}

// Connections of another type without S3 fields are read once and create no Secret.
func TestIgnoresConnectionsWithoutS3Fields(t *testing.T) {
	uri := newConnection("model", "uri", map[string]string{"URI": "x"})
	env := newTestEnv(t, plain, newPredictor("p"), &uri)
	env.reconcileNamespace()
	if got := storageEntries(t, env); got != nil {
		t.Errorf("entries %v", got)
	}
	env.expectNoRequests("connection without S3 fields", env.reconcileNamespace)
}

// The storage Secret of a user is not changed, and one Event reports it. It is adopted when the user labels it.
func TestKeepsForeignStorageSecret(t *testing.T) {
	a := newConnection("a", "s3", s3Data("http://minio:9000"))
	userSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "storage-config"}, Data: map[string][]byte{"localMinIO": []byte("{}")}}
	env := newTestEnv(t, plain, newPredictor("p"), &a, userSecret)
	if writes := env.reconcileNamespace(); len(writes) > 0 {
		t.Errorf("writes %q, want none", writes)
	}
	if events := env.takeEvents(); !strings.Contains(events, ReasonNotApplied) || !strings.Contains(events, "label it opendatahub.io/managed=true") {
		t.Errorf("unexpected Events %q", events)
	}
	env.expectNoRequests("a Secret of the user", env.reconcileNamespace)
	if events := env.takeEvents(); events != "" {
		t.Errorf("Events were repeated: %q", events)
	}
	userSecret.Labels = map[string]string{LabelManaged: "true"}
	env.update(userSecret)
	env.reconcileNamespace()
	if got := storageEntries(t, env); len(got) == 0 || got["a"]["bucket"] != "models" {
		t.Errorf("entries %v", got)
	}
	env.reconcileNamespace()
	env.expectNoRequests("adopted", env.reconcileNamespace)

	env.remove(&a)
	if got := env.reconcileNamespace(); !slices.Equal(got, []string{"patch Secret storage-config"}) {
		t.Errorf("without connections: writes %q, want %q", got, []string{"patch Secret storage-config"})
	}
	if got := storageEntries(t, env); len(got) != 1 || got["localMinIO"] == nil || env.exists(userSecret, "storage-config") && isManaged(userSecret) {
		t.Errorf("entries %v, labels %v, want only the entry of the user, and no label of the operator", got, userSecret.Labels)
	}
	env.expectNoRequests("released", env.reconcileNamespace)
	a.ResourceVersion = ""
	env.create(&a)
	env.reconcileNamespace()
	if got := storageEntries(t, env); len(got) != 2 || got["a"]["bucket"] != "models" {
		t.Errorf("entries %v, want those of the user and of the connection again", got)
	}
}

// A data connection with the name of the storage Secret is not changed.
func TestKeepsConnectionNamedLikeStorageSecret(t *testing.T) {
	sameName := newConnection("storage-config", "s3", s3Data("http://minio:9000"))
	env := newTestEnv(t, plain, newPredictor("p"), &sameName)
	if writes := env.reconcileNamespace(); len(writes) > 0 {
		t.Errorf("writes %q, want none", writes)
	}
}

// When storageSecretName changes, the entries move to the new Secret.
func TestRenamesStorageSecret(t *testing.T) {
	a := newConnection("a", "s3", s3Data("http://minio:9000"))
	env := newTestEnv(t, plain, newPredictor("p"), &a)
	env.reconcileNamespace()
	env.settings.StorageSecretName = "renamed"
	writes := env.reconcileNamespace()
	if !slices.Contains(writes, "apply Secret renamed") || !slices.Contains(writes, "delete Secret storage-config") {
		t.Errorf("writes %q, want the new Secret and the deletion of the old one", writes)
	}
}

// [O4] Without a service CA, the operator issues and renews the certificate of the sidecar.
func TestIssuesAndRenewsSidecarCertificate(t *testing.T) {
	env := newTestEnv(t, plain, newPredictor("p"))
	authProxyAlways(&env.settings)
	if got := objectsWritten(env.reconcileNamespace(), "apply"); !slices.Contains(got, "Secret model-serving-proxy-tls") {
		t.Fatalf("applied %q, want the certificate", got)
	}
	var first, second corev1.Secret
	if !env.exists(&first, "model-serving-proxy-tls") || first.Type != corev1.SecretTypeTLS || len(first.Data["tls.key"]) == 0 {
		t.Fatalf("certificate %v", first.Data)
	}
	env.reconcileNamespace()
	env.expectNoRequests("with a certificate", env.reconcileNamespace)
	_, requeueAfter, err := env.reconcile(env.namespaces, "", "team")
	if err != nil || requeueAfter < 200*24*time.Hour || requeueAfter > 365*24*time.Hour {
		t.Errorf("requeue after %s, error %v; want a renewal in 200 to 365 days", requeueAfter, err)
	}
	env.clock.SetTime(env.clock.Now().Add(requeueAfter + time.Minute))
	if got := env.reconcileNamespace(); !slices.Equal(got, []string{"apply Secret model-serving-proxy-tls"}) {
		t.Errorf("renewal: writes %q, want %q", got, []string{"apply Secret model-serving-proxy-tls"})
	}
	if env.exists(&second, "model-serving-proxy-tls"); string(first.Data["tls.crt"]) == string(second.Data["tls.crt"]) {
		t.Error("the certificate was not renewed")
	}
	env.reconcileNamespace()
	env.expectNoRequests("renewed", env.reconcileNamespace)
	second.Labels = nil
	if err := env.server.Update(t.Context(), &second); err != nil {
		t.Fatal(err)
	}
	if got := env.reconcileNamespace(); !slices.Equal(got, []string{"apply Secret model-serving-proxy-tls"}) || !env.exists(&first, second.Name) || !isManaged(&first) {
		t.Errorf("labels removed: writes %q, want the labels restored", got)
	}
	if string(first.Data["tls.crt"]) != string(second.Data["tls.crt"]) {
		t.Error("a new certificate was issued, although the Secret only lost its labels")
	}
	env.reconcileNamespace()
	env.expectNoRequests("labels restored", env.reconcileNamespace)
	env.settings.AuthProxy.Mode = meshsettings.AuthProxyNever
	if got := objectsWritten(env.reconcileNamespace(), "delete"); !slices.Contains(got, "Secret model-serving-proxy-tls") {
		t.Errorf("without a sidecar: deleted %q, want the certificate", got)
	}
}

func TestKeepsForeignCertificate(t *testing.T) {
	userSecret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "model-serving-proxy-tls"}}
	env := newTestEnv(t, plain, newPredictor("p"), userSecret)
	authProxyAlways(&env.settings)
	if got := env.reconcileNamespace(); slices.Contains(got, "apply Secret model-serving-proxy-tls") {
		t.Errorf("writes %q, want none of the Secret", got)
	}
	env.expectNoRequests("a certificate of the user", env.reconcileNamespace)
	env.settings.AuthProxy.Mode = meshsettings.AuthProxyNever
	if got := objectsWritten(env.reconcileNamespace(), "delete"); slices.Contains(got, "Secret model-serving-proxy-tls") {
		t.Errorf("deleted %q, want the Secret kept", got)
	}
}

// Errors are returned, and nothing is deleted if the desired objects are unknown.
func TestNamespaceErrors(t *testing.T) {
	env := newTestEnv(t, openShift, newPredictor("p"))
	env.reconcileNamespace()
	for name, target := range map[string]*error{"settings": &env.settingsErr, "enabled": &env.enabledErr} {
		*target = errDown
		if writes, _, err := env.reconcile(env.namespaces, "", "team"); !errors.Is(err, errDown) || len(writes) > 0 {
			t.Errorf("%s: writes %q, error %v, want no writes and errDown", name, writes, err)
		}
		*target = nil
	}
	env.create(newDeployment(0))
	env.remove(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "modelmesh-serving-sa"}})
	env.failWrite = func(verb, kind string) error {
		if kind == "ServiceAccount" {
			return errDown
		}
		return nil
	}
	writes, _, err := env.reconcile(env.namespaces, "", "team")
	if !errors.Is(err, errDown) || !slices.Contains(writes, "apply RoleBinding prometheus-ns-access") {
		t.Errorf("failed write: writes %q, error %v, want the other objects written and errDown", writes, err)
	}
	env.takeEvents()
	env.failWrite = func(verb, kind string) error {
		if kind != "ServiceAccount" {
			return nil
		}
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
		}}
	}
	if _, requeueAfter, err := env.reconcile(env.namespaces, "", "team"); err != nil || requeueAfter != 0 || env.takeEvents() != "" {
		t.Errorf("terminating namespace: requeue after %s, error %v", requeueAfter, err)
	}
	env.failWrite = func(string, string) error { return nil }
	if writes := env.reconcileNamespace(); !slices.Equal(writes, []string{"apply ServiceAccount modelmesh-serving-sa"}) {
		t.Errorf("after the failures: writes %q, want %q", writes, []string{"apply ServiceAccount modelmesh-serving-sa"})
	}
	if writes, _, err := env.reconcile(env.namespaces, "", "absent"); len(writes) > 0 || err != nil {
		t.Errorf("deleted namespace: writes %q, error %v", writes, err)
	}
}
