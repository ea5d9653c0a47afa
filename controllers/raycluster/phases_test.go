package raycluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/odh-platform/odh-platform-operator/controllers/raycluster/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/test/raytest"
)

// podWith returns a head pod of the demo cluster with pull secrets, whose container is waiting with the given reason, if any.
func podWith(name, reason string, secrets ...string) *corev1.Pod {
	pod := raytest.Pod(name, raycluster.NodeTypeHead, "11111111-2222-3333-4444-555555555555")
	pod.Namespace, pod.Spec.ServiceAccountName = "team1", "robot"
	if reason != "" {
		pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodPending, raytest.Waiting(reason)
	}
	for _, s := range secrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
	}
	return pod
}

// [raycluster-5] [raycluster-6] [R22] Only pods that cannot pull their image and lack a pull secret of their ServiceAccount are deleted,
// including workers.
func TestPullSecretRepair(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team1", Name: "robot"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "late"}}}
	worker := podWith("worker", "ImagePullBackOff")
	worker.Labels[raycluster.LabelNodeType] = raycluster.NodeTypeWorker
	foreign := podWith("foreign", "ErrImagePull")
	foreign.OwnerReferences[0].UID = "another"
	terminating := podWith("terminating", "ErrImagePull")
	terminating.DeletionTimestamp, terminating.Finalizers = new(metav1.Unix(0, 0)), []string{"a/b"}
	restarted := podWith("restarted", "ImagePullBackOff")
	restarted.Status.Phase = corev1.PodRunning
	groupWithPullSecrets := strings.Replace(plainHead, "spec: {", "spec: {workerGroupSpecs: [{groupName: small, template: {spec: {imagePullSecrets: [{name: mine}]}}}], ", 1)
	workerOfGroup := worker.DeepCopy()
	workerOfGroup.Labels[raycluster.LabelGroup] = "small"
	specWithPullSecrets := strings.Replace(plainHead, "containers:", "imagePullSecrets: [{name: mine}], containers:", 1)
	for name, tc := range map[string]struct {
		spec    string
		pod     *corev1.Pod
		change  func(*testEnv)
		deleted bool
	}{
		"lacks the pull secret":                     {plainHead, podWith("head", "ErrImagePull"), nil, true},
		"lacks the pull secret and backs off":       {plainHead, podWith("head", "ImagePullBackOff", "other"), nil, true},
		"worker":                                    {plainHead, worker, nil, true},
		"not pending":                               {plainHead, podWith("head", ""), nil, false},
		"waiting for another reason":                {plainHead, podWith("head", "CreateContainerConfigError"), nil, false},
		"has the pull secret":                       {plainHead, podWith("head", "ErrImagePull", "late"), nil, false},
		"of another owner":                          {plainHead, foreign, nil, false},
		"terminating":                               {plainHead, terminating, nil, false},
		"imagePullSecrets are set":                  {specWithPullSecrets, podWith("head", "ErrImagePull"), nil, false},
		"imagePullSecrets are set in another group": {groupWithPullSecrets, worker, nil, true},
		"imagePullSecrets are set in its group":     {groupWithPullSecrets, workerOfGroup, nil, false},
		"running, with a container that cannot pull its image again": {plainHead, restarted, nil, false},
		"not on OpenShift":       {plainHead, podWith("head", "ErrImagePull"), func(s *testEnv) { s.served = capability.Set{} }, false},
		"no sidecar":             {plainHead, podWith("head", "ErrImagePull"), func(s *testEnv) { s.settings.OAuth = false }, false},
		"missing ServiceAccount": {plainHead, func() *corev1.Pod { p := podWith("head", "ErrImagePull"); p.Spec.ServiceAccountName = "none"; return p }(), nil, false},
		"suspended":              {strings.Replace(plainHead, "spec: {", "spec: {suspend: true, ", 1), podWith("head", "ErrImagePull"), nil, false},
		"init container lacks the pull secret": {plainHead, func() *corev1.Pod {
			p := podWith("head", "")
			p.Status.Phase, p.Status.InitContainerStatuses = corev1.PodPending, raytest.Waiting("ErrImagePull")
			return p
		}(), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t, account.DeepCopy(), tc.pod.DeepCopy())
			if tc.change != nil {
				tc.change(s)
			}
			u := s.create(demoCluster(hashedVersion, tc.spec))
			s.mustReconcile(u)
			deleted := strings.Contains(strings.Join(s.writes, "\n"), "delete Pod "+tc.pod.Name)
			if deleted != tc.deleted {
				t.Errorf("pod deleted: %t, want %t; writes %q", deleted, tc.deleted, s.writes)
			}
			if eventText := s.drainEvents(); strings.Contains(eventText, ReasonPullSecrets) != tc.deleted {
				t.Errorf("Events %q, want %s: %t", eventText, ReasonPullSecrets, tc.deleted)
			}
			if s.stateOf(u).deletedPods[tc.pod.UID] != tc.deleted {
				t.Errorf("deletion recorded under the UID of the pod: %t, want %t", !tc.deleted, tc.deleted)
			}
		})
	}
}

func TestPodIsDeletedOnceForPullSecret(t *testing.T) {
	s := newTestEnv(t, podWith("head", "ErrImagePull"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team1", Name: "robot"},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "late"}}})
	u := s.create(demoCluster(hashedVersion, plainHead))
	s.failWrite = func(verb, _ string) error {
		if verb == "delete" {
			return errors.New("no")
		}
		return nil
	}
	if _, _, err := s.reconcile(u); err == nil || !strings.Contains(err.Error(), "deleting Pod team1/head") {
		t.Errorf("got error %v, want one for the pod", err)
	}
	s.failWrite = func(string, string) error { return nil }
	s.mustReconcile(u)
	same := podWith("head", "ErrImagePull")
	if err := s.server.Create(t.Context(), same); err != nil { // the kubelet has not stopped the pod yet
		t.Fatal(err)
	}
	if writes := strings.Join(s.mustReconcile(u), "\n"); strings.Contains(writes, "delete Pod") {
		t.Errorf("the pod was deleted twice: writes %s", writes)
	}
}

// [B-5] If two clusters have the same host, only the one that was published first has an Ingress until it is deleted.
func TestOldestIngressKeepsSharedHost(t *testing.T) {
	s := newTestEnv(t)
	s.served = capability.Set{}
	create := func(name, namespace string) *unstructured.Unstructured {
		return s.create(fmt.Sprintf("metadata: {name: %s, namespace: %s, uid: %s-uid, annotations: {%s}}\n%s",
			name, namespace, name, hashedVersion, fmt.Sprintf(injectedHead, "kube-rbac-proxy")))
	}
	second, first := create("c-x", "rest"), create("c", "x-rest")
	s.mustReconcile(first)
	if writes, requeueAfter, err := s.reconcile(second); err != nil || requeueAfter != reconciler.RequeueBlocked || strings.Contains(strings.Join(writes, "\n"), "Ingress") {
		t.Errorf("got writes %q, requeueAfter %s and error %v, want no Ingress and a requeue after %s", writes, requeueAfter, err, reconciler.RequeueBlocked)
	}
	if eventText := s.drainEvents(); !strings.Contains(eventText, "the older Ingress x-rest/ray-dashboard-c of RayCluster c has the host ray-dashboard-c-x-rest.apps.example.org") {
		t.Errorf("unexpected Events %q", eventText)
	}
	if err := s.server.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s.mustReconcile(first)
	ingress := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "x-rest", Name: "ray-dashboard-c"}}
	if err := s.server.Delete(t.Context(), ingress); err != nil { // as the garbage collector does
		t.Fatal(err)
	}
	if writes := s.mustReconcile(second); !slices.Contains(writes, "apply Ingress ray-dashboard-c-x") {
		t.Errorf("the Ingress was not applied after the host became free: writes %q", writes)
	}
}

// [R16] [R38] One Event reports why a dashboard is not published or not secured, and another that it is published.
func TestRecordEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   string
		change func(*testEnv)
		want   string
	}{
		"no problem":                      {fmt.Sprintf(injectedHead, "oauth-proxy"), func(*testEnv) {}, ""},
		"no domain, Event of type Normal": {fmt.Sprintf(injectedHead, "kube-rbac-proxy"), func(s *testEnv) { s.served = capability.Set{}; s.domain = func() string { return "" } }, "Normal "},
		"no domain":                       {fmt.Sprintf(injectedHead, "kube-rbac-proxy"), func(s *testEnv) { s.served = capability.Set{}; s.domain = func() string { return "" } }, ReasonNoDomain},
		"no sidecar":                      {mutualHead, func(*testEnv) {}, ReasonNotSecured},
		"no certificates":                 {plainHead, func(s *testEnv) { s.settings.OAuth = false }, ReasonNotSecured},
		"OAuth disabled":                  {mutualHead, func(s *testEnv) { s.settings.OAuth = false }, "Normal " + ReasonNotPublished},
		"OAuth disabled, publish is gateway without HTTPRoutes": {mutualHead, func(s *testEnv) { s.settings.OAuth, s.settings.Publish = false, config.PublishGateway }, "Normal " + ReasonNotPublished},
		"OAuth disabled, publish is gateway": {mutualHead, func(s *testEnv) {
			s.served, s.settings.OAuth, s.settings.Publish = capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup, capability.HTTPRoute), false, config.PublishGateway
		}, ""},
		"OAuth disabled, publish is open": {mutualHead, func(s *testEnv) { s.settings.OAuth, s.settings.Publish = false, config.PublishOpen }, ""},
		"OAuth proxy behind a Gateway": {fmt.Sprintf(injectedHead, "oauth-proxy"), func(s *testEnv) {
			s.served, s.settings.Publish = capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup, capability.HTTPRoute), config.PublishGateway
		}, "Normal " + ReasonNotPublished},
		"sidecar behind a Gateway on OpenShift without an OAuth server": {fmt.Sprintf(injectedHead, "oauth-proxy"), func(s *testEnv) {
			s.served, s.settings.Publish = capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.HTTPRoute), config.PublishGateway
		}, "Normal " + ReasonNotPublished},
		"kube-rbac-proxy behind a Gateway without BackendTLSPolicy": {fmt.Sprintf(injectedHead, "kube-rbac-proxy"), func(s *testEnv) {
			s.served, s.settings.Exposure = capability.NewSet(capability.HTTPRoute), config.Exposure{Kind: config.ExposeGateway}
		}, "Normal " + ReasonNotPublished},
		"kube-rbac-proxy behind a Gateway with BackendTLSPolicy": {fmt.Sprintf(injectedHead, "kube-rbac-proxy"), func(s *testEnv) {
			s.served, s.settings.Exposure = capability.NewSet(capability.HTTPRoute, capability.BackendTLSPolicy), config.Exposure{Kind: config.ExposeGateway}
		}, ""},
		"no Gateway configured": {fmt.Sprintf(injectedHead, "kube-rbac-proxy"), func(s *testEnv) {
			s.served, s.settings.Exposure = capability.NewSet(capability.HTTPRoute, capability.BackendTLSPolicy), config.Exposure{Kind: config.ExposeGateway}
			s.settings.GatewayNamespace, s.domain = "", func() string { return "" }
		}, "no Gateway is named: set raycluster.gatewayNamespace"},
		"token of Ray, no pod": {tokenHead, func(s *testEnv) { s.settings.KubeRaySecurity = config.KubeRaySecurityTrust }, "Normal " + ReasonNotPublished},
		"KubeRay not found": {fmt.Sprintf(injectedHead, "oauth-proxy"), func(s *testEnv) {
			s.kubeRayNamespaces = func(config.RayCluster) ([]string, bool) { return nil, true }
		}, "Warning " + ReasonNoKubeRay},
		"OAuth disabled after the injection": {fmt.Sprintf(injectedHead, "oauth-proxy"), func(s *testEnv) { s.settings.OAuth = false }, ReasonOutdated},
		"mTLS disabled after the injection":  {fmt.Sprintf(injectedHead, "oauth-proxy"), func(s *testEnv) { s.settings.MTLS = false }, ReasonOutdated},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			tc.change(s)
			u := s.create(demoCluster(hashedVersion, tc.spec))
			s.mustReconcile(u)
			eventText := s.drainEvents()
			if tc.want == "" && eventText != "" || !strings.Contains(eventText, tc.want) {
				t.Errorf("got Events %q, want %q", eventText, tc.want)
			}
			s.mustReconcile(u)
			if eventText := s.drainEvents(); eventText != "" {
				t.Errorf("Events were repeated: %q", eventText)
			}
		})
	}
}

// [R38] After a dashboard waited for a domain, an Event reports that it is published, but not that it no longer is to be published.
func TestPublicationIsReported(t *testing.T) {
	const published = "Normal " + ReasonPublished + " the dashboard is published"
	for name, tc := range map[string]struct {
		change func(*testEnv)
		want   string
	}{
		"a domain is set":         {func(s *testEnv) { s.settings.IngressDomain = "apps.example.org" }, published + " below apps.example.org"},
		"publication is disabled": {func(s *testEnv) { s.settings.Publish = config.PublishNone }, ""},
		"a Gateway publishes": {func(s *testEnv) {
			s.settings.IngressDomain, s.settings.Publish = "apps.example.org", config.PublishGateway
			s.served = capability.NewSet(capability.HTTPRoute, capability.BackendTLSPolicy)
		}, published},
		"a domain is set and OAuth is disabled, so no Ingress is created": {func(s *testEnv) {
			s.settings.IngressDomain, s.settings.OAuth = "apps.example.org", false
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestEnv(t)
			s.served, s.domain = capability.Set{}, func() string { return "" }
			u := s.create(demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "kube-rbac-proxy")))
			s.mustReconcile(u)
			s.drainEvents()
			tc.change(s)
			s.mustReconcile(u)
			got := slices.DeleteFunc(strings.Split(s.drainEvents(), "\n"), func(e string) bool { return !strings.Contains(e, ReasonPublished) })
			if strings.Join(got, "\n") != tc.want {
				t.Errorf("got Events %q, want %q", got, tc.want)
			}
		})
	}
}

// [R28] Disabled injections and their objects are retained while pods may use them. For a suspended cluster, admission is triggered once
// for each generation to remove the injections.
func TestTriggerAdmissionOfSuspendedCluster(t *testing.T) {
	s := newTestEnv(t)
	u := s.create(demoCluster(hashedVersion, fmt.Sprintf(injectedHead, "oauth-proxy")))
	n := raycluster.View(u.Object).Names()
	s.mustReconcile(u)
	s.settings.OAuth, s.settings.MTLS = false, false
	triggered := func(writes []string) bool {
		return strings.Contains(strings.Join(writes, "\n"), "patch RayCluster demo")
	}
	if triggered(s.mustReconcile(u)) {
		t.Error("admission was triggered while pods may exist")
	}
	if mode := s.certificates.modes[len(s.certificates.modes)-1]; !mode.MTLS || mode.Issuer != raycluster.IssuerOperator || mode.Auth != raycluster.AuthOAuth {
		t.Errorf("mode of the certificates %+v, want OAuth and mTLS with certificates of the operator", mode)
	}
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	if !s.exists(&corev1.ServiceAccount{}, "team1", n.ServiceAccount) || !s.exists(&corev1.Secret{}, "team1", n.CookieSecret) ||
		!s.exists(&rbacv1.ClusterRoleBinding{}, "", n.ClusterRoleBinding) || !s.exists(route, "team1", n.Dashboard) {
		t.Error("objects that running pods need were deleted")
	}
	s.edit(u, func() { _ = unstructured.SetNestedField(u.Object, true, "spec", "suspend") })
	if !triggered(s.mustReconcile(u)) {
		t.Error("admission was not triggered")
	}
	s.mustReconcile(u)
	if triggered(s.mustReconcile(u)) {
		t.Error("admission was triggered twice")
	}
	s.edit(u, func() { u.Object["spec"] = clusterFrom(t, plainHead).Object["spec"] })
	s.mustReconcile(u)
	if s.exists(&corev1.ServiceAccount{}, "team1", n.ServiceAccount) || s.exists(&corev1.Secret{}, "team1", n.CookieSecret) {
		t.Error("objects of the disabled feature were not deleted")
	}
}

func TestEffectiveMode(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   string
		issuer raycluster.Issuer
	}{
		"issued by the operator": {fmt.Sprintf(injectedHead, "oauth-proxy"), raycluster.IssuerOperator}, "issued by the pods": {mutualHead, raycluster.IssuerPod},
	} {
		u := clusterFrom(t, demoCluster("", tc.spec))
		in := inputsFor(u, true, withoutOAuth, func(in *resources.Inputs) { in.MTLS = false })
		if mode := in.EffectiveMode(raycluster.View(u.Object)); !mode.MTLS || mode.Issuer != tc.issuer {
			t.Errorf("%s: unexpected mode: %+v", name, mode)
		}
	}
	u := clusterFrom(t, demoCluster("", "spec: {managedBy: kueue.x-k8s.io/multikueue}"))
	if mode := inputsFor(u, true).EffectiveMode(raycluster.View(u.Object)); mode.Active() {
		t.Errorf("got mode %+v for a cluster of MultiKueue, want an inactive one", mode)
	}
}

// [R21] Status updates of KubeRay do not enqueue the cluster.
func TestClusterChanged(t *testing.T) {
	original := clusterFrom(t, demoCluster("a: b", plainHead))
	original.SetGeneration(1)
	changed := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		u := original.DeepCopy()
		change(u)
		return u
	}
	for name, tc := range map[string]struct {
		updated *unstructured.Unstructured
		want    bool
	}{
		"no change": {original, false},
		"status": {changed(func(u *unstructured.Unstructured) {
			u.Object["status"] = map[string]any{"state": "ready"}
			u.SetResourceVersion("9")
		}), false},
		"spec":       {changed(func(u *unstructured.Unstructured) { u.SetGeneration(2) }), true},
		"annotation": {changed(func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }), true},
		"label":      {changed(func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }), true},
		"deletion":   {changed(func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(new(metav1.Unix(0, 0))) }), true},
		"recreated":  {changed(func(u *unstructured.Unstructured) { u.SetUID("another") }), true},
	} {
		if got := clusterChanged().Update(event.UpdateEvent{ObjectOld: original, ObjectNew: tc.updated}); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestBindingToCluster(t *testing.T) {
	got := bindingToCluster(t.Context(), bindingOf("x", "demo", "team1"))
	if len(got) != 1 || got[0].NamespacedName != (types.NamespacedName{Namespace: "team1", Name: "demo"}) {
		t.Errorf("got requests %v, want one for team1/demo", got)
	}
	if got := bindingToCluster(t.Context(), bindingOf("x", "demo", "")); len(got) > 0 {
		t.Errorf("got requests %v for a binding without a namespace, want none", got)
	}
}

func TestRecreatedClusterHasNewState(t *testing.T) {
	r := &clusterReconciler{applier: apply.New(apply.Options{})}
	u := clusterFrom(t, demoCluster("", plainHead))
	r.stateOf(u).messages.Replace("a", "other")
	name := types.NamespacedName{Namespace: "team1", Name: "demo"}
	if r.forget(name, u.GetUID()); r.stateOf(u).messages["a"] != "other" {
		t.Error("forget with the UID of the cluster deleted its state")
	}
	u.SetUID("another")
	if !r.stateOf(u).messages.Replace("a", "other") {
		t.Error("a new cluster got the state of a deleted cluster of the same name")
	}
	r.forget(name, "")
	if _, found := r.states.Get(name); found {
		t.Error("forget did not delete the state of a deleted cluster")
	}
}
