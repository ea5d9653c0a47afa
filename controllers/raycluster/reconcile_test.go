package raycluster

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
)

const hashedVersion = "ray.openshift.ai/version: '1'"

// [R3] [R7] [R21] NetworkPolicies are applied first, the finalizer before the binding, and the third reconcile sends no request.
func TestReconcileCreatesObjects(t *testing.T) {
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
	n := raycluster.View(u.Object).Names()
	want := []string{
		"apply NetworkPolicy " + n.HeadPolicy, "apply NetworkPolicy " + n.WorkerPolicy,
		"apply Secret " + n.CookieSecret, "apply ServiceAccount " + n.ServiceAccount,
		"patch RayCluster demo", "apply ClusterRoleBinding " + n.ClusterRoleBinding,
		"apply Service " + n.ProxyService, "apply Route " + n.Dashboard, "apply Route " + n.Client,
	}
	writes, requeueAfter, err := s.reconcile(u)
	if err != nil || requeueAfter != time.Hour {
		t.Errorf("got requeueAfter %s, error %v, want the hour of the certificates", requeueAfter, err)
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if s.refresh(u); !controllerutil.ContainsFinalizer(u, raycluster.Finalizer) {
		t.Error("the finalizer is missing")
	}
	if len(s.certificates.modes) != 1 || !s.certificates.modes[0].MTLS || s.certificates.modes[0].Auth != raycluster.AuthOAuth {
		t.Errorf("certificates were reconciled with modes %+v, want one with mTLS and OAuth", s.certificates.modes)
	}
	s.mustReconcile(u) // the finalizer changed the resourceVersion
	s.expectIdle(u)
	if eventText := s.drainEvents(); eventText != "" {
		t.Errorf("unexpected Events %q", eventText)
	}
}

// [R3] Without NetworkPolicies the cluster is not exposed, and the error is retried.
func TestReconcileExposesNothingWithoutNetworkPolicies(t *testing.T) {
	s := newTestEnv(t)
	s.failWrite = func(_, kind string) error {
		if kind == "NetworkPolicy" {
			return errors.New("the webhook rejects the object")
		}
		return nil
	}
	u := s.create(demoCluster(hashedVersion, plainHead))
	writes, _, err := s.reconcile(u)
	if err == nil || !strings.Contains(err.Error(), "the webhook rejects the object") {
		t.Errorf("got error %v, want the rejection", err)
	}
	if slices.ContainsFunc(writes, exposes) {
		t.Errorf("the cluster was exposed: writes %q", writes)
	}
	if len(s.certificates.modes) != 1 {
		t.Error("want one reconcile of the certificates")
	}
	if eventText := s.drainEvents(); !strings.Contains(eventText, ReasonNotApplied) || !strings.Contains(eventText, "not published until its NetworkPolicies exist") {
		t.Errorf("unexpected Events %q", eventText)
	}
	if _, _, err := s.reconcile(u); err == nil || s.drainEvents() != "" {
		t.Error("want an error again, but no second Event")
	}
}

// Each step that a foreign object blocks is reported once, even if several are blocked.
func TestBlockedStepsAreReportedOnce(t *testing.T) {
	text := demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy"))
	n := raycluster.View(clusterFrom(t, text).Object).Names()
	taken := metav1.ObjectMeta{Namespace: "team1", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p", Controller: new(true)}}}
	policy, account := &networkingv1.NetworkPolicy{ObjectMeta: taken}, &corev1.ServiceAccount{ObjectMeta: taken}
	policy.Name, account.Name = n.HeadPolicy, n.ServiceAccount
	s := newTestEnv(t, policy, account)
	u := s.create(text)
	for range 3 {
		s.mustReconcile(u)
	}
	if eventText := s.drainEvents(); strings.Count(eventText, ReasonNotApplied) != 2 {
		t.Errorf("got Events %q, want one for the policy and one for the account", eventText)
	}
}

// A conflict requeues the cluster without an error, unless it is joined with another error.
func TestConflictIsRequeuedUnlessJoinedWithOtherError(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}, "demo", errors.New("changed"))
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, plainHead))
	s.failWrite = func(verb, kind string) error {
		if kind == "RayCluster" {
			return conflict
		}
		return nil
	}
	if _, requeueAfter, err := s.reconcile(u); err != nil || requeueAfter != reconciler.RequeueSoon {
		t.Errorf("got requeueAfter %s, error %v", requeueAfter, err)
	}
	s = newTestEnv(t)
	u = s.create(demoCluster(hashedVersion, plainHead))
	s.failWrite = func(_, kind string) error {
		switch kind {
		case "RayCluster":
			return conflict
		case "ServiceAccount":
			return errors.New("no quota")
		}
		return nil
	}
	if _, _, err := s.reconcile(u); err == nil || !strings.Contains(err.Error(), "no quota") {
		t.Errorf("got error %v, want the quota error", err)
	}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error": {nil, false}, "alone": {conflict, true}, "wrapped": {fmt.Errorf("patching: %w", conflict), true},
		"joined": {errors.Join(conflict, conflict), true}, "joined with another error": {errors.Join(conflict, errors.New("no")), false},
	} {
		if got := isConflict(tc.err); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestReconcileReportsForeignNetworkPolicy(t *testing.T) {
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, plainHead))
	foreign := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "team1", Name: raycluster.View(u.Object).Names().HeadPolicy}}
	if err := s.server.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	_, requeueAfter, err := s.reconcile(u)
	if err != nil || requeueAfter != reconciler.RequeueBlocked {
		t.Errorf("got requeueAfter %s, error %v", requeueAfter, err)
	}
	if eventText := s.drainEvents(); !strings.Contains(eventText, "delete it or recreate it under another name") {
		t.Errorf("Events %q, want it to contain %q", eventText, "delete it or recreate it under another name")
	}
	if s.exists(&corev1.Service{}, "team1", raycluster.View(u.Object).Names().ProxyService) {
		t.Error("the Service of the proxy exists")
	}
}

// exposes reports whether a write exposes the cluster.
func exposes(write string) bool {
	return slices.ContainsFunc([]string{"apply Service ", "apply Route ", "apply Ingress ", "apply HTTPRoute "}, func(kind string) bool {
		return strings.HasPrefix(write, kind)
	})
}

// [R3] The cluster is not exposed before its certificates and all objects of the sidecar exist. A failed write does not prevent the writes
// of other sidecar objects.
func TestReconcileExposesNothingWithoutSidecarObjects(t *testing.T) {
	for kind, applied := range map[string]string{
		"ClusterRoleBinding": "apply ServiceAccount ", "Secret": "apply ServiceAccount ", "ServiceAccount": "apply Secret ", "RayCluster": "apply Secret ",
	} {
		s := newTestEnv(t)
		s.failWrite = func(_, failing string) error {
			if failing == kind {
				return errors.New("no " + kind)
			}
			return nil
		}
		u := s.create(demoCluster(hashedVersion, plainHead))
		writes, _, err := s.reconcile(u)
		if err == nil || !strings.Contains(err.Error(), "no "+kind) {
			t.Errorf("got error %v, want the error for %s", err, kind)
		}
		if slices.ContainsFunc(writes, exposes) || !slices.ContainsFunc(writes, func(w string) bool { return strings.HasPrefix(w, applied) }) {
			t.Errorf("unexpected writes without %s: %q", kind, writes)
		}
		s.failWrite = func(string, string) error { return nil }
		if writes := s.mustReconcile(u); !slices.ContainsFunc(writes, exposes) {
			t.Errorf("the cluster was not exposed once %s could be written: writes %q", kind, writes)
		}
	}
	s := newTestEnv(t)
	s.certificates.err = errors.New("no certificates")
	if writes, _, err := s.reconcile(s.create(demoCluster(hashedVersion, plainHead))); err == nil || slices.ContainsFunc(writes, exposes) {
		t.Errorf("unexpected writes without certificates: %q, error %v", writes, err)
	}
}

// [R18] NetworkPolicies are not written during the discovery of KubeRay.
func TestReconcileWaitsForKubeRayNamespaces(t *testing.T) {
	s := newTestEnv(t)
	s.kubeRayKnown = false
	u := s.create(demoCluster(hashedVersion, plainHead))
	writes, requeueAfter, err := s.reconcile(u)
	if len(writes) > 0 || requeueAfter != reconciler.RequeueSoon || err != nil {
		t.Errorf("got writes %q, requeueAfter %s, error %v", writes, requeueAfter, err)
	}
}

// An administrator must allow a pause, and a pause does not affect NetworkPolicies, certificates and deletion.
func TestPaused(t *testing.T) {
	const annotation = "platform.opendatahub.io/paused"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team1", Annotations: map[string]string{annotation: "true"}}}
	for name, tc := range map[string]struct {
		value     string
		namespace *corev1.Namespace
		allowed   bool
		paused    bool
		event     string
	}{
		"set by the user only":    {"true", nil, false, false, ReasonPauseIgnored},
		"the setting allows it":   {"true", nil, true, true, "Normal " + ReasonPaused},
		"the namespace allows it": {"true", namespace, false, true, "Normal " + ReasonPaused},
		"false":                   {"false", namespace, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			if tc.namespace != nil {
				s = newTestEnv(t, tc.namespace.DeepCopy())
			}
			s.settings.AllowPause = tc.allowed
			u := s.create(demoCluster(hashedVersion+", "+annotation+": '"+tc.value+"'", fmt.Sprintf(injectedHead, "oauth-proxy")))
			n := raycluster.View(u.Object).Names()
			writes := s.mustReconcile(u)
			if paused := !slices.ContainsFunc(writes, exposes); paused != tc.paused {
				t.Errorf("paused: %t, want %t; writes %q", paused, tc.paused, writes)
			}
			if !s.exists(&networkingv1.NetworkPolicy{}, "team1", n.HeadPolicy) || len(s.certificates.modes) != 1 {
				t.Error("the NetworkPolicy of the head or the certificates are missing")
			}
			if eventText := s.drainEvents(); !strings.Contains(eventText, tc.event) || tc.event == "" && eventText != "" {
				t.Errorf("unexpected Events %q", eventText)
			}
			s.mustReconcile(u)
			if eventText := s.drainEvents(); eventText != "" {
				t.Errorf("Events were repeated: %q", eventText)
			}
			s.refresh(u)
			if err := s.server.Delete(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			if s.mustReconcile(u); s.exists(u, "team1", "demo") {
				t.Error("the deletion of the cluster did not finish")
			}
		})
	}
}

func TestReconcileFailsWithInvalidSettings(t *testing.T) {
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, plainHead))
	s.kubeRayKnown = true
	s.clusterReconciler.settings = brokenSettings
	if writes, _, err := s.reconcile(u); err == nil || len(writes) > 0 {
		t.Errorf("got writes %q, error %v, want only an error", writes, err)
	}
}

// [R9] Each cookie key is random. Existing keys are kept, except for the predictable key of the CodeFlare operator.
func TestCookieKeyIsRandomAndKept(t *testing.T) {
	s := newTestEnv(t)
	first, second := s.create(demoCluster(hashedVersion, plainHead)), s.create(strings.ReplaceAll(demoCluster(hashedVersion, plainHead), "team1", "team2"))
	n := raycluster.View(first.Object).Names()
	s.mustReconcile(first)
	s.mustReconcile(second)
	secret, other := &corev1.Secret{}, &corev1.Secret{}
	if !s.exists(secret, "team1", n.CookieSecret) || !s.exists(other, "team2", n.CookieSecret) || len(secret.Data[raycluster.KeyCookie]) != 44 || string(secret.Data[raycluster.KeyCookie]) == string(other.Data[raycluster.KeyCookie]) {
		t.Errorf("got keys %q and %q, want two different keys of 44 bytes", secret.Data, other.Data)
	}
	deleted := string(secret.Data[raycluster.KeyCookie])
	if err := s.server.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.mustReconcile(first)
	if !s.exists(secret, "team1", n.CookieSecret) || string(secret.Data[raycluster.KeyCookie]) == deleted || len(secret.Data[raycluster.KeyCookie]) != 44 {
		t.Errorf("got key %q after the Secret was deleted, want a new one", secret.Data)
	}

	for stored, kept := range map[string]bool{
		base64.StdEncoding.EncodeToString([]byte("twenty bytes of sha1")): false, base64.URLEncoding.EncodeToString([]byte("thirty-two bytes of another user")): true,
	} {
		old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team3", Name: n.CookieSecret, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(first, raycluster.GVK)},
		}, Data: map[string][]byte{raycluster.KeyCookie: []byte(stored)}}
		s = newTestEnv(t, old)
		third := s.create(strings.ReplaceAll(demoCluster(hashedVersion, plainHead), "team1", "team3"))
		s.reconcileUntilIdle(third)
		if !s.exists(secret, "team3", n.CookieSecret) || (string(secret.Data[raycluster.KeyCookie]) == stored) != kept || len(secret.Data[raycluster.KeyCookie]) != 44 {
			t.Errorf("key %q kept: %t, want %t; data %q", stored, !kept, kept, secret.Data)
		}
		if eventText := s.drainEvents(); strings.Contains(eventText, "Warning "+ReasonCookieReplaced) == kept {
			t.Errorf("%q: unexpected Events %q", stored, eventText)
		}
	}
}

// [R6] [R7] Deletion removes the bindings of both naming schemes with any settings; without the finalizer it does nothing.
func TestDeletionRemovesBindings(t *testing.T) {
	const hashed, legacy = "demo-team1-auth-28b12466", "demo-team1-auth" // with the version annotation, and without it
	for name, tc := range map[string]struct {
		change     func(*testEnv)
		finalizers []string
		remaining  []string // bindings
	}{
		"finalizer of this operator only": {func(*testEnv) {}, []string{raycluster.Finalizer}, nil},
		"OAuth disabled":                  {func(s *testEnv) { s.settings.OAuth = false }, []string{raycluster.Finalizer}, nil},
		"no OpenShift":                    {func(s *testEnv) { s.served = capability.Set{} }, []string{raycluster.Finalizer}, nil},
		"foreign finalizer":               {func(*testEnv) {}, []string{"example.com/redis", raycluster.Finalizer}, nil},
		"invalid settings":                {func(s *testEnv) { s.clusterReconciler.settings = brokenSettings }, []string{raycluster.Finalizer}, nil},
		"no finalizer of this operator":   {func(*testEnv) {}, []string{"example.com/redis"}, []string{hashed, legacy}},
		"KubeRay unknown":                 {func(s *testEnv) { s.kubeRayKnown = false }, []string{raycluster.Finalizer}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t, bindingOf(hashed, "demo", "team1"), bindingOf(legacy, "demo", "team1"))
			tc.change(s)
			u := clusterFrom(t, demoCluster(hashedVersion, plainHead))
			u.SetFinalizers(tc.finalizers)
			if err := s.server.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			if err := s.server.Delete(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			s.mustReconcile(u)
			for _, binding := range []string{hashed, legacy} {
				if got := s.exists(&rbacv1.ClusterRoleBinding{}, "", binding); got != slices.Contains(tc.remaining, binding) {
					t.Errorf("ClusterRoleBinding %s exists: %t, want %t", binding, got, !got)
				}
			}
			err := s.server.Get(t.Context(), client.ObjectKeyFromObject(u), u)
			if deleted := err != nil; deleted != (len(tc.finalizers) == 1 && tc.finalizers[0] == raycluster.Finalizer) {
				t.Errorf("the cluster was deleted: %t, finalizers %q: %v", deleted, tc.finalizers, err)
			}
			if err == nil && controllerutil.ContainsFinalizer(u, raycluster.Finalizer) {
				t.Error("the finalizer of the operator was not removed")
			}
			for _, w := range s.writes {
				if strings.HasPrefix(w, "apply") {
					t.Errorf("unexpected write for a terminating cluster: %s", w)
				}
			}
		})
	}
}

// A binding with the same name that belongs to another cluster is neither adopted nor deleted.
func TestEnsureBindingReportsForeignBinding(t *testing.T) {
	u := clusterFrom(t, demoCluster(hashedVersion, plainHead))
	name := raycluster.View(u.Object).Names().ClusterRoleBinding
	foreign := bindingOf(name, "demo-team1", "x")
	s := newTestEnv(t, foreign)
	if err := s.server.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if _, requeueAfter, err := s.reconcile(u); err != nil || requeueAfter != reconciler.RequeueBlocked {
		t.Errorf("got requeueAfter %s, error %v", requeueAfter, err)
	}
	if eventText := s.drainEvents(); !strings.Contains(eventText, ReasonBindingTaken) {
		t.Errorf("Events %q, want it to contain %q", eventText, ReasonBindingTaken)
	}
	if s.refresh(u); len(u.GetFinalizers()) > 0 {
		t.Error("the cluster has a finalizer, although it has no ClusterRoleBinding")
	}
	if err := s.server.Delete(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	s.mustReconcile(u)
	if !s.exists(foreign, "", name) {
		t.Error("the ClusterRoleBinding of the other cluster was deleted")
	}
}

// [R7] The binding of a deleted cluster is deleted.
func TestDeleteOrphanedBindings(t *testing.T) {
	u := clusterFrom(t, demoCluster("", plainHead))
	name := raycluster.View(u.Object).Names().ClusterRoleBinding
	s := newTestEnv(t, bindingOf(name, "demo", "team1"))
	s.mustReconcile(u)
	if s.exists(&rbacv1.ClusterRoleBinding{}, "", name) {
		t.Error("the orphaned ClusterRoleBinding was not deleted")
	}
}

// [R6] No cluster-scoped object is created if the cache still holds a deleted cluster.
func TestEnsureBindingSkipsDeletedCluster(t *testing.T) {
	s := newTestEnv(t)
	u := clusterFrom(t, demoCluster(hashedVersion, plainHead))
	c := raycluster.View(u.Object)
	p := resources.Build(c, inputsFor(u, true))
	u.SetResourceVersion("7")
	if err := s.ensureBinding(t.Context(), u, c, p.Binding); err != nil || s.exists(&rbacv1.ClusterRoleBinding{}, "", c.Names().ClusterRoleBinding) {
		t.Errorf("the ClusterRoleBinding was created for a deleted cluster: writes %q, error %v", s.writes, err)
	}
	recreated := s.create(demoCluster(hashedVersion, plainHead))
	u.SetUID("another")
	for _, finalizers := range [][]string{nil, {raycluster.Finalizer}} {
		u.SetFinalizers(finalizers)
		err := s.ensureBinding(t.Context(), u, c, p.Binding)
		if err != nil && !apierrors.IsConflict(err) || s.exists(&rbacv1.ClusterRoleBinding{}, "", c.Names().ClusterRoleBinding) {
			t.Errorf("finalizers %q, writes %q, error %v for a cluster that was recreated", finalizers, s.writes, err)
		}
	}
	if err := s.ensureBinding(t.Context(), recreated, c, p.Binding); err != nil || !s.exists(&rbacv1.ClusterRoleBinding{}, "", c.Names().ClusterRoleBinding) {
		t.Errorf("got writes %q, error %v, want the ClusterRoleBinding created", s.writes, err)
	}
}

// [R28] Objects of disabled features are deleted. Objects of other clients are not deleted.
func TestDisabledObjectsArePruned(t *testing.T) {
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, plainHead))
	n := raycluster.View(u.Object).Names()
	s.mustReconcile(u)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team1", Name: "theirs", Labels: map[string]string{raycluster.LabelClusterName: "demo"}}}
	if err := s.server.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.settings.OAuth = false
	s.mustReconcile(u)
	for _, o := range []struct {
		client.Object
		namespace, name string
	}{
		{&corev1.Secret{}, "team1", n.CookieSecret}, {&corev1.Service{}, "team1", n.ProxyService},
		{&corev1.ServiceAccount{}, "team1", n.ServiceAccount}, {&rbacv1.ClusterRoleBinding{}, "", n.ClusterRoleBinding},
	} {
		if s.exists(o.Object, o.namespace, o.name) {
			t.Errorf("%T %s was not deleted", o.Object, o.name)
		}
	}
	if s.refresh(u); len(u.GetFinalizers()) > 0 {
		t.Error("the finalizer was not removed")
	}
	if !s.exists(foreign, "team1", "theirs") {
		t.Error("a foreign object was deleted")
	}
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	if s.exists(route, "team1", n.Dashboard) {
		t.Error("the dashboard was published without authentication")
	}
	if eventText := s.drainEvents(); !strings.Contains(eventText, ReasonNotPublished) {
		t.Errorf("Events %q, want it to contain %q", eventText, ReasonNotPublished)
	}
	s.settings.Publish = config.PublishOpen
	s.mustReconcile(u)
	if !s.exists(route, "team1", n.Dashboard) {
		t.Fatal("the dashboard is not published, although publication is enabled")
	}
	if to, _, _ := unstructured.NestedString(route.Object, "spec", "to", "name"); to != "demo-head-svc" {
		t.Errorf("the Route has backend %s, want %s", to, "demo-head-svc")
	}
}
