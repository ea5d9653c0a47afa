package openshift

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/reconciler"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

var openShiftAPIs = capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup,
	capability.InferenceService, capability.ServingRuntime, capability.ClusterServingRuntime)

func newRoute() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(capability.Route)
	return u
}

func newAnnotatedRuntime(name string, annotations map[string]string) *v1alpha1.ServingRuntime {
	r := newRuntime(name, 1)
	r.Annotations = annotations
	return &r
}

// The annotations of the runtime determine the Route.
func TestRouteFollowsRuntimeAnnotations(t *testing.T) {
	runtime, model := newAnnotatedRuntime("ovms", nil), newInferenceService("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
	env := newTestEnv(t, openShiftAPIs, runtime, model)
	if writes := env.reconcileRoute("digits"); len(writes) > 0 {
		t.Fatalf("without the annotation: writes %q, want none", writes)
	}
	runtime.Annotations = withRoute
	env.update(runtime)
	if writes := env.reconcileRoute("digits"); !slices.Equal(writes, []string{"apply Route digits"}) {
		t.Fatalf("with the annotation: writes %q, want the Route", writes)
	}
	env.expectNoRequests("with a Route", func() []string { return env.reconcileRoute("digits") })
	runtime.Annotations = withRouteAndAuth
	env.update(runtime)
	env.reconcileRoute("digits")
	got := newRoute()
	env.exists(got, "digits")
	if port, _, _ := unstructured.NestedInt64(got.Object, "spec", "port", "targetPort"); port != 8443 {
		t.Errorf("with the proxy: target port %d, want 8443", port)
	}
	runtime.Annotations = nil
	env.update(runtime)
	if writes := env.reconcileRoute("digits"); !slices.Equal(writes, []string{"delete Route digits"}) {
		t.Errorf("annotation removed: writes %q, want the deletion of the Route", writes)
	}
	env.expectNoRequests("without a Route", func() []string { return env.reconcileRoute("digits") })
}

// A model with a name that registries and Ray clusters use is published only if its Route exists already.
func TestReservedNamesOfRoutes(t *testing.T) {
	for _, name := range []string{"ray-dashboard-vic", "rayclient-vic", "reg-https", "reg-http"} {
		model := newInferenceService(name, func(s *v1beta1.InferenceService) { s.UID = "uid" })
		env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), model)
		if writes := env.reconcileRoute(name); len(writes) > 0 {
			t.Errorf("%s: unexpected writes: %q", name, writes)
		}
		if eventText := env.takeEvents(); !strings.Contains(eventText, "registries and Ray clusters use names such as "+name) {
			t.Errorf("%s: Events %q, want it to contain %q", name, eventText, "registries and Ray clusters use names such as "+name)
		}
		existing := newRoute()
		existing.SetNamespace("team")
		existing.SetName(name)
		existing.SetLabels(map[string]string{LabelInferenceService: name})
		existing.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(model, v1beta1.GroupVersion.WithKind("InferenceService"))})
		env.create(existing)
		if writes := env.reconcileRoute(name); !env.exists(existing, name) || !isManaged(existing) || strings.Contains(env.takeEvents(), "names such as") {
			t.Errorf("%s: writes %q, want the existing Route adopted without the Event", name, writes)
		}
	}
}

// A Route requires the deployment mode ModelMesh, a valid model, an enabled namespace, the Route API and a runtime.
func TestNoRouteWithoutPrerequisites(t *testing.T) {
	for name, change := range map[string]func(*testEnv, *v1beta1.InferenceService){
		"namespace not enabled": func(env *testEnv, _ *v1beta1.InferenceService) { env.enabled = false },
		"Route API not served": func(env *testEnv, _ *v1beta1.InferenceService) {
			env.served = capability.NewSet(capability.InferenceService)
		},
		"another deployment mode": func(_ *testEnv, m *v1beta1.InferenceService) {
			m.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: "RawDeployment"}
		},
		"no storage": func(_ *testEnv, m *v1beta1.InferenceService) { m.Spec.Predictor.Model.Storage = nil },
		"runtimes not served": func(env *testEnv, _ *v1beta1.InferenceService) {
			env.served = capability.NewSet(capability.Route, capability.InferenceService)
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := newInferenceService("digits")
			env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute))
			change(env, model)
			env.create(model)
			if writes := env.reconcileRoute("digits"); len(writes) > 0 {
				t.Errorf("unexpected writes %q", writes)
			}
		})
	}
}

// A Route that is not desired is deleted.
func TestDeletesRouteWhenNotDesired(t *testing.T) {
	model := newInferenceService("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
	env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), model)
	env.reconcileRoute("digits")
	model.Annotations[v1beta1.AnnotationDeploymentMode] = "RawDeployment"
	env.update(model)
	if writes := env.reconcileRoute("digits"); !slices.Equal(writes, []string{"delete Route digits"}) {
		t.Errorf("writes %q, want %q", writes, []string{"delete Route digits"})
	}
}

// One Event reports why no Route is created.
func TestReportsProblemOnce(t *testing.T) {
	model := newInferenceService("digits")
	env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), model)
	env.settings.RESTProxy.Enabled = false
	env.reconcileRoute("digits")
	env.reconcileRoute("digits")
	if eventText := env.takeEvents(); strings.Count(eventText, ReasonNoRoute) != 1 || !strings.Contains(eventText, "restProxy.enabled is false") {
		t.Errorf("unexpected Events %q", eventText)
	}
	env.settings.RESTProxy.Enabled = true
	env.reconcileRoute("digits")
	env.settings.RESTProxy.Enabled = false
	env.reconcileRoute("digits")
	if eventText := env.takeEvents(); strings.Count(eventText, ReasonNoRoute) != 1 {
		t.Errorf("same problem after a recovery: Events %q, want one", eventText)
	}
}

// A name that the label of a Route cannot hold, and a Route that the API server refuses, are reported: neither is retried.
func TestReportsRouteThatCannotExist(t *testing.T) {
	long := strings.Repeat("a", 64)
	env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), newInferenceService(long), newInferenceService("digits"))
	env.reconcileRoute(long)
	env.reconcileRoute(long)
	if eventText := env.takeEvents(); strings.Count(eventText, ReasonNoRoute) != 1 || !strings.Contains(eventText, "has 64 characters and label inferenceservice-name can have 63") {
		t.Errorf("long name: Events %q, want one", eventText)
	}
	env.failWrite = func(_, kind string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "digits", field.ErrorList{field.Invalid(field.NewPath("spec"), "x", "test")})
	}
	for range 2 {
		if _, _, err := env.reconcile(env.routes, "team", "digits"); err == nil {
			t.Error("no error of a refused Route")
		}
	}
	if eventText := env.takeEvents(); strings.Count(eventText, ReasonNoRoute) != 1 || !strings.Contains(eventText, `spec: Invalid value: "x": test`) {
		t.Errorf("refused Route: Events %q, want one", eventText)
	}
}

func TestForeignRoute(t *testing.T) {
	env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), newInferenceService("digits"))
	foreign := newRoute()
	foreign.SetNamespace("team")
	foreign.SetName("digits")
	env.create(foreign)
	_, requeueAfter, err := env.reconcile(env.routes, "team", "digits")
	if err != nil || requeueAfter != reconciler.RequeueBlocked || !strings.Contains(env.takeEvents(), "was not created by this operator") {
		t.Errorf("requeue after %s, error %v; want RequeueBlocked and an Event", requeueAfter, err)
	}
}

// [O3] The Route contains the CA in the TLS Secret of the mesh, or the certificate if the Secret has no CA. A changed Secret is read again.
func TestRouteTrustsMeshCA(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mesh-tls"}, Data: map[string][]byte{"tls.crt": []byte("LEAF")}}
	env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), newInferenceService("digits"))
	meshTLS("")(&env.settings)
	env.reconcileRoute("digits")
	if eventText := env.takeEvents(); !strings.Contains(eventText, "Secret mesh-tls holds no certificate") {
		t.Errorf("Events %q, want it to contain %q", eventText, "Secret mesh-tls holds no certificate")
	}
	destinationCA := func() string {
		got := newRoute()
		env.exists(got, "digits")
		ca, _, _ := unstructured.NestedString(got.Object, "spec", "tls", "destinationCACertificate")
		return ca
	}
	env.create(secret)
	env.reconcileRoute("digits")
	if got := destinationCA(); got != "LEAF" {
		t.Errorf("unexpected CA %q in the Route", got)
	}
	env.expectNoRequests("with the CA", func() []string { return env.reconcileRoute("digits") })
	secret.Data["ca.crt"] = []byte("CA")
	env.update(secret)
	env.reconcileRoute("digits")
	if got := destinationCA(); got != "CA" {
		t.Errorf("unexpected CA %q in the Route", got)
	}
}

func TestRouteErrors(t *testing.T) {
	env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), newInferenceService("digits"))
	for name, target := range map[string]*error{"settings": &env.settingsErr, "enabled": &env.enabledErr} {
		*target = errDown
		if writes, _, err := env.reconcile(env.routes, "team", "digits"); !errors.Is(err, errDown) || len(writes) > 0 {
			t.Errorf("%s: writes %q, error %v, want no writes and errDown", name, writes, err)
		}
		*target = nil
	}
	env.failWrite = func(string, string) error { return errDown }
	if _, _, err := env.reconcile(env.routes, "team", "digits"); !errors.Is(err, errDown) {
		t.Errorf("failed write: error %v, want errDown", err)
	}
	env.failWrite = func(string, string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "routes"}, "digits", errors.New("custom resource definition is terminating"))
	}
	if _, requeueAfter, err := env.reconcile(env.routes, "team", "digits"); err != nil || requeueAfter != reconciler.RequeueSoon {
		t.Errorf("terminating CRD: requeue after %s, error %v", requeueAfter, err)
	}
}

// The state of a deleted InferenceService is deleted; a recreated one starts without state.
func TestForgetsDeletedInferenceService(t *testing.T) {
	model := newInferenceService("digits", func(s *v1beta1.InferenceService) { s.UID = "one" })
	env := newTestEnv(t, openShiftAPIs, newAnnotatedRuntime("ovms", withRoute), model)
	env.settings.RESTProxy.Enabled = false
	env.reconcileRoute("digits")
	env.remove(model)
	env.reconcileRoute("digits")
	if _, found := env.routes.states.Get(client.ObjectKeyFromObject(model)); found {
		t.Error("the state of the deleted InferenceService was not deleted")
	}
	env.create(newInferenceService("digits", func(s *v1beta1.InferenceService) { s.UID = "two" }))
	env.reconcileRoute("digits")
	env.takeEvents()
	env.remove(model)
	env.create(newInferenceService("digits", func(s *v1beta1.InferenceService) { s.UID = "three" })) // without a reconcile in between
	env.reconcileRoute("digits")
	if eventText := env.takeEvents(); !strings.Contains(eventText, ReasonNoRoute) {
		t.Errorf("Events %q of the recreated InferenceService, want %s", eventText, ReasonNoRoute)
	}
}

// Without Routes, the exposure determines the kind of the object, and objects of other kinds are deleted.
func TestKindFollowsExposure(t *testing.T) {
	runtime, model := newAnnotatedRuntime("ovms", withRoute), newInferenceService("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
	env := newTestEnv(t, capability.NewSet(capability.HTTPRoute, capability.InferenceService, capability.ServingRuntime), runtime, model)
	for _, step := range []struct {
		kind string
		want []string
	}{
		{config.ExposeAuto, nil},
		{config.ExposeIngress, []string{"apply Ingress digits"}},
		{config.ExposeGateway, []string{"apply HTTPRoute digits", "delete Ingress digits"}},
		{config.ExposeAuto, []string{"delete HTTPRoute digits"}},
	} {
		env.routes.exposure = exposure{Exposure: config.Exposure{Kind: step.kind, IngressDomain: "example.org"}, gateway: resources.Gateway{Name: "g", Namespace: "n"}}
		if writes := env.reconcileRoute("digits"); !slices.Equal(writes, step.want) {
			t.Errorf("%s: writes %q, want %q", step.kind, writes, step.want)
		}
		env.expectNoRequests(step.kind, func() []string { return env.reconcileRoute("digits") })
	}
}

// Only Gateways receive the CA of an issued certificate.
func TestGatewaysTrustIssuedCA(t *testing.T) {
	env := newTestEnv(t, capability.NewSet(capability.BackendTLSPolicy, capability.HTTPRoute), newDeployment(1))
	env.settings.AuthProxy.Mode = meshsettings.AuthProxyAlways
	env.namespaces.exposure.Kind = config.ExposeIngress
	if writes := env.reconcileNamespace(); slices.Contains(writes, "apply BackendTLSPolicy "+CAObjectName) {
		t.Errorf("Ingress: writes %q, want no BackendTLSPolicy", writes)
	}
	env.reconcileNamespace() // the second reconcile reads the written objects
	env.namespaces.exposure.Kind = config.ExposeGateway
	if writes := env.reconcileNamespace(); len(writes) > 0 {
		t.Errorf("no Gateway configured: writes %q, want none", writes)
	}
	env.namespaces.exposure.gateway.Namespace = "gateways"
	if writes := env.reconcileNamespace(); !slices.Equal(writes, []string{"apply ConfigMap " + CAObjectName, "apply BackendTLSPolicy " + CAObjectName}) {
		t.Errorf("Gateway: writes %q, want the ConfigMap with the CA and the BackendTLSPolicy", writes)
	}
	env.expectNoRequests("with the CA", env.reconcileNamespace)
	var issued corev1.Secret
	var bundle corev1.ConfigMap
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(capability.BackendTLSPolicy)
	if !env.exists(&issued, authproxy.TLSSecret) || !env.exists(&bundle, CAObjectName) || !env.exists(policy, CAObjectName) || bundle.Data["ca.crt"] != string(issued.Data["ca.crt"]) {
		t.Error("the CA ConfigMap does not contain the CA of the certificate")
	}
	if err := env.server.Delete(t.Context(), &issued); err != nil {
		t.Fatal(err)
	}
	previousCA := string(issued.Data["ca.crt"])
	env.reconcileNamespace()
	if !env.exists(&issued, authproxy.TLSSecret) || !env.exists(&bundle, CAObjectName) || bundle.Data["ca.crt"] != string(issued.Data["ca.crt"])+previousCA {
		t.Error("the CA ConfigMap does not contain the new CA and the previous one, which pods still use")
	}
	env.settings.AuthProxy.Mode = meshsettings.AuthProxyNever
	if writes := env.reconcileNamespace(); !slices.Contains(writes, "delete BackendTLSPolicy "+CAObjectName) || !slices.Contains(writes, "delete ConfigMap "+CAObjectName) {
		t.Errorf("without the proxy: writes %q, want the deletion of the ConfigMap and the BackendTLSPolicy", writes)
	}
}
