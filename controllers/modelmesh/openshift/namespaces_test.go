package openshift

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
)

func predictor(name string) *v1alpha1.Predictor {
	return &v1alpha1.Predictor{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
}

// kinds returns the kinds of the writes with a verb.
func kinds(writes []string, verb string) []string {
	var out []string
	for _, w := range writes {
		if rest, is := strings.CutPrefix(w, verb+" "); is {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

// The first model creates all objects, later reconciles write nothing, and after the last model the unused objects are deleted.
func TestCreatesAndDeletesObjectsWithModels(t *testing.T) {
	served := openShift.UnsortedList()
	s := newTestEnv(t, capability.NewSet(append(served, capability.InferenceService)...))
	if writes := s.reconcileNamespace(); len(writes) > 0 {
		t.Fatalf("got writes %q for a namespace without models, want none", writes)
	}
	model := inference("digits")
	s.create(model, deployment(0))
	want := []string{
		"ClusterRoleBinding team-modelmesh-serving-sa-auth-delegator", "RoleBinding prometheus-ns-access",
		"Secret model-serving-proxy-cookie", "ServiceAccount modelmesh-serving-sa",
	}
	if got := kinds(s.reconcileNamespace(), "apply"); !slices.Equal(got, want) {
		t.Fatalf("created %q, want %q", got, want)
	}
	var cookie corev1.Secret
	if !s.exists(&cookie, "model-serving-proxy-cookie") || len(cookie.Data["cookie_secret"]) != 44 {
		t.Errorf("cookie %q", cookie.Data)
	}
	s.expectNoRequests("with a model", s.reconcileNamespace)
	s.remove(model)
	if got := kinds(s.reconcileNamespace(), "delete"); !slices.Equal(got, []string{
		"ClusterRoleBinding team-modelmesh-serving-sa-auth-delegator", "Secret model-serving-proxy-cookie", "ServiceAccount modelmesh-serving-sa",
	}) {
		t.Errorf("removed %q", got)
	}
	s.expectNoRequests("without models", s.reconcileNamespace)
	s.enabled = false
	if got := kinds(s.reconcileNamespace(), "delete"); !slices.Equal(got, []string{"RoleBinding prometheus-ns-access"}) {
		t.Errorf("not served any more, removed %q, want %q", got, []string{"RoleBinding prometheus-ns-access"})
	}
	s.expectNoRequests("not served", s.reconcileNamespace)
}

type usage struct{ used, runtimes bool }

func (env *testEnv) usage(namespace string) (usage, error) {
	used, runtimes, err := env.namespaces.getUsage(env.t.Context(), namespace)
	return usage{used, runtimes}, err
}

// [O5] [O9] Running pods need their ServiceAccount after the last model too. A Predictor is a model.
func TestNamespaceUsage(t *testing.T) {
	other := inference("raw", func(s *v1beta1.InferenceService) { s.Annotations = nil })
	for name, c := range map[string]struct {
		existing []client.Object
		want     usage
	}{
		"no models":                           {nil, usage{}},
		"a Predictor":                         {[]client.Object{predictor("p")}, usage{used: true}},
		"an InferenceService":                 {[]client.Object{inference("i")}, usage{used: true}},
		"an InferenceService of another mode": {[]client.Object{other}, usage{}},
		"a runtime without pods":              {[]client.Object{deployment(0)}, usage{runtimes: true}},
		"a runtime with pods":                 {[]client.Object{deployment(1)}, usage{used: true, runtimes: true}},
		"runtime with terminating pods": {[]client.Object{func() client.Object {
			d := deployment(0)
			d.Status.Replicas = 1
			return d
		}()}, usage{used: true, runtimes: true}},
		"a foreign Deployment": {[]client.Object{func() client.Object {
			d := deployment(1)
			d.Labels = nil
			return d
		}()}, usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t, capability.NewSet(capability.InferenceService), c.existing...)
			got, err := s.usage("team")
			if err != nil || got != c.want {
				t.Errorf("%+v, error %v; want %+v", got, err, c.want)
			}
			if got, err := s.usage("other"); err != nil || got != (usage{}) {
				t.Errorf("elsewhere %+v, error %v", got, err)
			}
		})
	}
	s := newTestEnv(t, plain, inference("i"))
	if got, err := s.usage("team"); err != nil || got.used {
		t.Errorf("of an API that is not served: %+v, error %v", got, err)
	}
}

func entriesOf(t *testing.T, s *testEnv) map[string]map[string]string {
	t.Helper()
	var secret corev1.Secret
	if !s.exists(&secret, "storage-config") {
		return nil
	}
	if secret.Labels[LabelManaged] != "true" {
		t.Errorf("labels %v", secret.Labels)
	}
	out := map[string]map[string]string{}
	for key, value := range secret.Data {
		members := map[string]string{}
		if err := json.Unmarshal(value, &members); err != nil {
			t.Fatal(err)
		}
		out[key] = members
	}
	return out
}

// storage-config follows the data connections and the CAs. Without changes nothing is read.
func TestStorageFollowsConnections(t *testing.T) {
	a, b := connection("a", "s3", s3("https://s3")), connection("b", "s3", s3("http://minio:9000"))
	s := newTestEnv(t, plain, predictor("p"), &a)
	s.reconcileNamespace()
	if got := entriesOf(t, s); len(got) != 1 || got["a"]["certificate"] != "" {
		t.Fatalf("entries %v", got)
	}
	s.reconcileNamespace() // what was written is read once
	s.expectNoRequests("one connection", s.reconcileNamespace)
	bundle := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: BundleConfigMap}, Data: map[string]string{BundleKey: "PEM"}}
	s.create(&b, bundle)
	s.reconcileNamespace()
	if got := entriesOf(t, s); len(got) != 2 || got["a"]["certificate"] != "PEM" || got["b"]["endpoint_url"] != "http://minio:9000" {
		t.Errorf("entries %v", got)
	}
	s.reconcileNamespace()
	s.expectNoRequests("two connections", s.reconcileNamespace)
	b.Data["AWS_S3_BUCKET"] = []byte("others")
	s.update(&b)
	s.reconcileNamespace()
	if got := entriesOf(t, s); got["b"]["bucket"] != "others" {
		t.Errorf("entries %v", got)
	}
	var tampered corev1.Secret
	s.exists(&tampered, "storage-config")
	tampered.Data["a"] = []byte("{}")
	s.update(&tampered)
	s.reconcileNamespace()
	if got := entriesOf(t, s); got["a"]["bucket"] != "models" {
		t.Errorf("entries that another client changed: %v", got)
	}
	s.remove(&a)
	s.reconcileNamespace()
	if got := entriesOf(t, s); len(got) != 1 {
		t.Errorf("entries %v", got)
	}
	s.remove(&b)
	if got := s.reconcileNamespace(); !slices.Equal(got, []string{"delete Secret storage-config"}) {
		t.Errorf("without connections %q, want %q", got, []string{"delete Secret storage-config"})
	}
}

// Connections of other types are read once and create no Secret.
func TestIgnoresConnectionsOfOtherTypes(t *testing.T) {
	uri := connection("model", "uri", map[string]string{"URI": "x"})
	s := newTestEnv(t, plain, predictor("p"), &uri)
	s.reconcileNamespace()
	if got := entriesOf(t, s); got != nil {
		t.Errorf("entries %v", got)
	}
	s.expectNoRequests("nothing to gather", s.reconcileNamespace)
}

// The storage Secret of a user is kept: one Event reports it. It is adopted when the user labels it.
func TestKeepsForeignStorageSecret(t *testing.T) {
	a := connection("a", "s3", s3("http://minio:9000"))
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "storage-config"}, Data: map[string][]byte{"localMinIO": []byte("{}")}}
	s := newTestEnv(t, plain, predictor("p"), &a, own)
	if writes := s.reconcileNamespace(); len(writes) > 0 {
		t.Errorf("written %q", writes)
	}
	if events := s.takeEvents(); !strings.Contains(events, ReasonNotApplied) || !strings.Contains(events, "label it opendatahub.io/managed=true") {
		t.Errorf("unexpected Events %q", events)
	}
	s.expectNoRequests("a Secret of the user", s.reconcileNamespace)
	if events := s.takeEvents(); events != "" {
		t.Errorf("Events were repeated: %q", events)
	}
	own.Labels = map[string]string{LabelManaged: "true"}
	s.update(own)
	s.reconcileNamespace()
	if got := entriesOf(t, s); len(got) == 0 || got["a"]["bucket"] != "models" {
		t.Errorf("entries %v", got)
	}
	var kept corev1.Secret
	s.exists(&kept, "storage-config")
	s.reconcileNamespace()
	s.expectNoRequests("taken over", s.reconcileNamespace)
}

// A data connection with the name of the storage Secret is kept.
func TestKeepsConnectionNamedLikeStorageSecret(t *testing.T) {
	odd := connection("storage-config", "s3", s3("http://minio:9000"))
	s := newTestEnv(t, plain, predictor("p"), &odd)
	if writes := s.reconcileNamespace(); len(writes) > 0 {
		t.Errorf("written %q", writes)
	}
}

// The entries move when the name in the settings changes.
func TestRenamesStorageSecret(t *testing.T) {
	a := connection("a", "s3", s3("http://minio:9000"))
	s := newTestEnv(t, plain, predictor("p"), &a)
	s.reconcileNamespace()
	s.settings.StorageSecretName = "elsewhere"
	writes := s.reconcileNamespace()
	if !slices.Contains(writes, "apply Secret elsewhere") || !slices.Contains(writes, "delete Secret storage-config") {
		t.Errorf("written %q", writes)
	}
}

// [O4] Without a platform CA, the operator issues and renews the certificate of the sidecar, and keeps the Secret of a user.
func TestSidecarCertificateIsRenewedUnlessUserProvidesIt(t *testing.T) {
	s := newTestEnv(t, plain, predictor("p"))
	always(&s.settings)
	if got := kinds(s.reconcileNamespace(), "apply"); !slices.Contains(got, "Secret model-serving-proxy-tls") {
		t.Fatalf("made %q", got)
	}
	var first, second corev1.Secret
	if !s.exists(&first, "model-serving-proxy-tls") || first.Type != corev1.SecretTypeTLS || len(first.Data["tls.key"]) == 0 {
		t.Fatalf("certificate %v", first.Data)
	}
	s.reconcileNamespace()
	s.expectNoRequests("with a certificate", s.reconcileNamespace)
	_, requeueAfter, err := s.reconcile(s.namespaces, "", "team")
	if err != nil || requeueAfter < 200*24*time.Hour || requeueAfter > 365*24*time.Hour {
		t.Errorf("requeue after %s, error %v; want a renewal in a year", requeueAfter, err)
	}
	s.clock.SetTime(s.clock.Now().Add(requeueAfter + time.Minute))
	if got := s.reconcileNamespace(); !slices.Equal(got, []string{"apply Secret model-serving-proxy-tls"}) {
		t.Errorf("when due %q, want %q", got, []string{"apply Secret model-serving-proxy-tls"})
	}
	if s.exists(&second, "model-serving-proxy-tls"); string(first.Data["tls.crt"]) == string(second.Data["tls.crt"]) {
		t.Error("the certificate was not renewed")
	}
	s.reconcileNamespace()
	s.expectNoRequests("renewed", s.reconcileNamespace)
	second.Labels = nil
	if err := s.server.Update(t.Context(), &second); err != nil {
		t.Fatal(err)
	}
	if got := s.reconcileNamespace(); !slices.Equal(got, []string{"apply Secret model-serving-proxy-tls"}) || !s.exists(&first, second.Name) || !isManaged(&first) {
		t.Errorf("unexpected writes without its labels: %q", got)
	}
	if string(first.Data["tls.crt"]) != string(second.Data["tls.crt"]) {
		t.Error("a new certificate was issued, although the Secret only lost its labels")
	}
	s.reconcileNamespace()
	s.expectNoRequests("labelled again", s.reconcileNamespace)
	s.settings.AuthProxy.Mode = meshsettings.AuthProxyNever
	if got := kinds(s.reconcileNamespace(), "delete"); !slices.Contains(got, "Secret model-serving-proxy-tls") {
		t.Errorf("unexpected deletions without a sidecar: %q", got)
	}
}

func TestKeepsForeignCertificate(t *testing.T) {
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "model-serving-proxy-tls"}}
	s := newTestEnv(t, plain, predictor("p"), own)
	always(&s.settings)
	if got := s.reconcileNamespace(); slices.Contains(got, "apply Secret model-serving-proxy-tls") {
		t.Errorf("written %q", got)
	}
	s.expectNoRequests("a certificate of the user", s.reconcileNamespace)
	s.settings.AuthProxy.Mode = meshsettings.AuthProxyNever
	if got := kinds(s.reconcileNamespace(), "delete"); slices.Contains(got, "Secret model-serving-proxy-tls") {
		t.Errorf("removed what is not ours: %q", got)
	}
}

// Objects of the legacy controller are adopted without being recreated, and deleted with the last model. Those of users are kept.
func TestAdoptsObjectsOfLegacyController(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "modelmesh-serving-sa", Labels: map[string]string{"a": "b"}}}
	delegator := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: BindingName("team")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "modelmesh-serving-sa", Namespace: "team"}},
	}
	for _, manager := range []string{"manager", "kubectl-create"} {
		t.Run(manager, func(t *testing.T) {
			s := newTestEnv(t, openShift)
			p := predictor("p")
			s.create(p)
			for _, o := range []client.Object{account.DeepCopy(), delegator.DeepCopy()} {
				if err := s.server.Create(t.Context(), o, client.FieldOwner(manager)); err != nil {
					t.Fatal(err)
				}
			}
			_, requeueAfter, err := s.reconcile(s.namespaces, "", "team")
			if err != nil {
				t.Fatal(err)
			}
			var got corev1.ServiceAccount
			s.exists(&got, "modelmesh-serving-sa")
			formers := manager == "manager"
			if isManaged(&got) != formers || (requeueAfter > 0) == formers || strings.Contains(s.takeEvents(), "was not created by this operator") == formers {
				t.Errorf("labels %v, requeue after %s", got.Labels, requeueAfter)
			}
			s.remove(p)
			s.reconcileNamespace()
			if s.exists(&got, "modelmesh-serving-sa") == formers {
				t.Errorf("after the last model: there %t", !formers)
			}
		})
	}
}

// Errors are returned, and nothing is deleted while the desired objects are unknown.
func TestNamespaceErrors(t *testing.T) {
	s := newTestEnv(t, openShift, predictor("p"))
	s.reconcileNamespace()
	for name, set := range map[string]*error{"settings": &s.settingsErr, "whether it is served": &s.enabledErr} {
		*set = errDown
		if writes, _, err := s.reconcile(s.namespaces, "", "team"); !errors.Is(err, errDown) || len(writes) > 0 {
			t.Errorf("%s: written %q, error %v", name, writes, err)
		}
		*set = nil
	}
	s.create(deployment(0))
	s.remove(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "modelmesh-serving-sa"}})
	s.refuse = func(verb, kind string) error {
		if kind == "ServiceAccount" {
			return errDown
		}
		return nil
	}
	writes, _, err := s.reconcile(s.namespaces, "", "team")
	if !errors.Is(err, errDown) || !slices.Contains(writes, "apply RoleBinding prometheus-ns-access") {
		t.Errorf("one that fails: written %q, error %v", writes, err)
	}
	s.takeEvents()
	s.refuse = func(verb, kind string) error {
		if kind != "ServiceAccount" {
			return nil
		}
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
		}}
	}
	if _, requeueAfter, err := s.reconcile(s.namespaces, "", "team"); err != nil || requeueAfter != 0 || s.takeEvents() != "" {
		t.Errorf("a namespace on its way out: requeue after %s, error %v", requeueAfter, err)
	}
	s.refuse = func(string, string) error { return nil }
	if writes := s.reconcileNamespace(); !slices.Equal(writes, []string{"apply ServiceAccount modelmesh-serving-sa"}) {
		t.Errorf("writes afterwards %q, want %q", writes, []string{"apply ServiceAccount modelmesh-serving-sa"})
	}
	if writes, _, err := s.reconcile(s.namespaces, "", "gone"); len(writes) > 0 || err != nil {
		t.Errorf("deleted namespace: writes %q, error %v", writes, err)
	}
}
