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

func routeObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(capability.Route)
	return u
}

func annotated(name string, annotations map[string]string) *v1alpha1.ServingRuntime {
	r := runtimeOf(name, 1)
	r.Annotations = annotations
	return &r
}

// A Route is created, updated and deleted with the annotation of the runtime.
func TestRouteFollowsTheRuntime(t *testing.T) {
	runtime, model := annotated("ovms", nil), inference("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
	s := newTestEnv(t, openShiftAPIs, runtime, model)
	if writes := s.reconcileRoute("digits"); len(writes) > 0 {
		t.Fatalf("without the annotation: writes %q, want none", writes)
	}
	runtime.Annotations = routed
	s.update(runtime)
	if writes := s.reconcileRoute("digits"); !slices.Equal(writes, []string{"apply Route digits"}) {
		t.Fatalf("with the annotation: writes %q, want the Route", writes)
	}
	s.expectNoRequests("with a Route", func() []string { return s.reconcileRoute("digits") })
	runtime.Annotations = guarded
	s.update(runtime)
	s.reconcileRoute("digits")
	got := routeObject()
	s.exists(got, "digits")
	if port, _, _ := unstructured.NestedInt64(got.Object, "spec", "port", "targetPort"); port != 8443 {
		t.Errorf("with the proxy: target port %d, want 8443", port)
	}
	runtime.Annotations = nil
	s.update(runtime)
	if writes := s.reconcileRoute("digits"); !slices.Equal(writes, []string{"delete Route digits"}) {
		t.Errorf("after the removal of the annotation: writes %q, want the deletion of the Route", writes)
	}
	s.expectNoRequests("without a Route", func() []string { return s.reconcileRoute("digits") })
}

// A model does not get a reserved name of registries and Ray clusters, unless it is published already.
func TestReservedNamesOfRoutes(t *testing.T) {
	for _, name := range []string{"ray-dashboard-vic", "rayclient-vic", "reg-https", "reg-http"} {
		s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed), inference(name, func(s *v1beta1.InferenceService) { s.UID = "uid" }))
		if writes := s.reconcileRoute(name); len(writes) > 0 {
			t.Errorf("%s: unexpected writes: %q", name, writes)
		}
		if eventText := s.takeEvents(); !strings.Contains(eventText, "registries and Ray clusters use names such as "+name) {
			t.Errorf("%s: Events %q, want it to contain %q", name, eventText, "registries and Ray clusters use names such as "+name)
		}
		before := routeObject()
		before.SetNamespace("team")
		before.SetName(name)
		before.SetLabels(map[string]string{LabelInferenceService: name})
		s = newTestEnv(t, openShiftAPIs, annotated("ovms", routed), inference(name, func(s *v1beta1.InferenceService) { s.UID = "uid" }))
		s.create(before)
		if _, _, err := s.reconcile(s.routes, "team", name); err != nil || strings.Contains(s.takeEvents(), "names such as") {
			t.Errorf("%s: an existing Route was not kept: error %v", name, err)
		}
	}
}

// A Route requires the deployment mode, an enabled namespace, the Route API and a runtime.
func TestNoRouteWithoutPrerequisites(t *testing.T) {
	for name, change := range map[string]func(*testEnv, *v1beta1.InferenceService){
		"namespace not enabled": func(s *testEnv, _ *v1beta1.InferenceService) { s.enabled = false },
		"Route API not served": func(s *testEnv, _ *v1beta1.InferenceService) {
			s.served = capability.NewSet(capability.InferenceService)
		},
		"another deployment mode": func(_ *testEnv, m *v1beta1.InferenceService) {
			m.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: "RawDeployment"}
		},
		"no storage": func(_ *testEnv, m *v1beta1.InferenceService) { m.Spec.Predictor.Model.Storage = nil },
		"runtimes not served": func(s *testEnv, _ *v1beta1.InferenceService) {
			s.served = capability.NewSet(capability.Route, capability.InferenceService)
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := inference("digits")
			s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed))
			change(s, model)
			s.create(model)
			if writes := s.reconcileRoute("digits"); len(writes) > 0 {
				t.Errorf("unexpected writes %q", writes)
			}
		})
	}
}

// A Route that is not desired is deleted.
func TestDeletesRouteWhenNotDesired(t *testing.T) {
	model := inference("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
	s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed), model)
	s.reconcileRoute("digits")
	model.Annotations[v1beta1.AnnotationDeploymentMode] = "RawDeployment"
	s.update(model)
	if writes := s.reconcileRoute("digits"); !slices.Equal(writes, []string{"delete Route digits"}) {
		t.Errorf("writes %q, want %q", writes, []string{"delete Route digits"})
	}
}

// Routes of the legacy controller are adopted, and deleted if not desired.
func TestAdoptsLegacyRoutes(t *testing.T) {
	for _, annotations := range []map[string]string{routed, nil} {
		model := inference("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
		s := newTestEnv(t, openShiftAPIs, annotated("ovms", annotations), model)
		old := routeObject()
		old.SetNamespace("team")
		old.SetName("digits")
		old.SetLabels(map[string]string{LabelInferenceService: "digits"})
		old.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(model, v1beta1.GroupVersion.WithKind("InferenceService"))})
		old.Object["spec"] = map[string]any{"host": "digits-team.apps.example.com", "path": "/v2/models/digits"}
		if err := s.server.Create(t.Context(), old, client.FieldOwner("manager")); err != nil {
			t.Fatal(err)
		}
		writes := s.reconcileRoute("digits")
		got := routeObject()
		found := s.exists(got, "digits")
		host, _, _ := unstructured.NestedString(got.Object, "spec", "host")
		if found != (annotations != nil) || found && (host != "digits-team.apps.example.com" || !isManaged(got)) {
			t.Errorf("Route found: %t, want %t; host %s, writes %q", found, annotations != nil, host, writes)
		}
		s.expectNoRequests("after the adoption", func() []string { return s.reconcileRoute("digits") })
	}
}

// One Event reports why no Route is created.
func TestProblemsAreReported(t *testing.T) {
	model := inference("digits")
	s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed), model)
	s.settings.RESTProxy.Enabled = false
	s.reconcileRoute("digits")
	s.reconcileRoute("digits")
	if eventText := s.takeEvents(); strings.Count(eventText, ReasonNoRoute) != 1 || !strings.Contains(eventText, "restProxy.enabled is false") {
		t.Errorf("unexpected Events %q", eventText)
	}
	s.settings.RESTProxy.Enabled = true
	s.reconcileRoute("digits")
	s.settings.RESTProxy.Enabled = false
	s.reconcileRoute("digits")
	if eventText := s.takeEvents(); strings.Count(eventText, ReasonNoRoute) != 1 {
		t.Errorf("the problem returned: Events %q, want one", eventText)
	}
}

func TestForeignRoute(t *testing.T) {
	s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed), inference("digits"))
	foreign := routeObject()
	foreign.SetNamespace("team")
	foreign.SetName("digits")
	s.create(foreign)
	_, requeueAfter, err := s.reconcile(s.routes, "team", "digits")
	if err != nil || requeueAfter != reconciler.RequeueBlocked || !strings.Contains(s.takeEvents(), "was not created by this operator") {
		t.Errorf("requeue after %s, error %v; want RequeueBlocked and an Event", requeueAfter, err)
	}
}

// [O3] The Route verifies a mesh with TLS by the CA in its Secret, which is read again after changes.
func TestRouteTrustsMeshCA(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mesh-tls"}, Data: map[string][]byte{"tls.crt": []byte("LEAF")}}
	s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed), inference("digits"))
	meshTLS("")(&s.settings)
	s.reconcileRoute("digits")
	if eventText := s.takeEvents(); !strings.Contains(eventText, "Secret mesh-tls holds no certificate") {
		t.Errorf("Events %q, want it to contain %q", eventText, "Secret mesh-tls holds no certificate")
	}
	trust := func() string {
		got := routeObject()
		s.exists(got, "digits")
		text, _, _ := unstructured.NestedString(got.Object, "spec", "tls", "destinationCACertificate")
		return text
	}
	s.create(secret)
	s.reconcileRoute("digits")
	if got := trust(); got != "LEAF" {
		t.Errorf("unexpected CA %q in the Route", got)
	}
	s.expectNoRequests("with the CA", func() []string { return s.reconcileRoute("digits") })
	secret.Data["ca.crt"] = []byte("CA")
	s.update(secret)
	s.reconcileRoute("digits")
	if got := trust(); got != "CA" {
		t.Errorf("unexpected CA %q in the Route", got)
	}
}

// [O8] The finalizer of the legacy controller is removed if it is the only one.
func TestRemovesLegacyFinalizer(t *testing.T) {
	kserve := "inferenceservice.finalizers"
	for name, c := range map[string]struct {
		finalizers []string
		change     func(*v1beta1.InferenceService)
		deleted    bool
		gone       bool
	}{
		"only finalizer":           {[]string{Finalizer}, func(*v1beta1.InferenceService) {}, true, true},
		"KServe has a finalizer":   {[]string{kserve, Finalizer}, func(*v1beta1.InferenceService) {}, true, false},
		"not deleted":              {[]string{Finalizer}, func(*v1beta1.InferenceService) {}, false, false},
		"another deployment mode":  {[]string{Finalizer}, func(s *v1beta1.InferenceService) { s.Annotations = nil }, true, false},
		"only a foreign finalizer": {[]string{"example.com/hold"}, func(*v1beta1.InferenceService) {}, true, false},
		"Route API not served":     {[]string{Finalizer}, func(*v1beta1.InferenceService) {}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			served := openShiftAPIs
			if name == "Route API not served" {
				served = capability.NewSet(capability.InferenceService)
			}
			model := inference("digits", func(s *v1beta1.InferenceService) { s.Finalizers = c.finalizers }, c.change)
			s := newTestEnv(t, served, model)
			if c.deleted {
				s.remove(model)
			}
			s.reconcileRoute("digits")
			if gone := !s.exists(&v1beta1.InferenceService{}, "digits"); gone != c.gone {
				t.Errorf("InferenceService deleted: %t, want %t", gone, c.gone)
			}
		})
	}
}

func TestRouteErrors(t *testing.T) {
	model := inference("digits", func(s *v1beta1.InferenceService) { s.Finalizers = []string{Finalizer} })
	s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed), model)
	for name, set := range map[string]*error{"settings": &s.settingsErr, "enabled": &s.enabledErr} {
		*set = errDown
		if writes, _, err := s.reconcile(s.routes, "team", "digits"); !errors.Is(err, errDown) || len(writes) > 0 {
			t.Errorf("failure of %s: writes %q, error %v", name, writes, err)
		}
		*set = nil
	}
	s.refuse = func(string, string) error { return errDown }
	if _, _, err := s.reconcile(s.routes, "team", "digits"); !errors.Is(err, errDown) {
		t.Errorf("failed write of the Route: error %v", err)
	}
	s.refuse = func(string, string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "routes"}, "digits", errors.New("custom resource definition is terminating"))
	}
	if _, requeueAfter, err := s.reconcile(s.routes, "team", "digits"); err != nil || requeueAfter != reconciler.RequeueSoon {
		t.Errorf("terminating CRD: requeue after %s, error %v", requeueAfter, err)
	}
	s.remove(model)
	for cause, fails := range map[error]bool{errDown: true, apierrors.NewConflict(schema.GroupResource{}, "digits", errDown): false, apierrors.NewNotFound(schema.GroupResource{}, "digits"): false} {
		s.refuse = func(string, string) error { return cause }
		_, requeueAfter, err := s.reconcile(s.routes, "team", "digits")
		if (err != nil) != fails || (requeueAfter > 0) != apierrors.IsConflict(cause) {
			t.Errorf("failed removal of the finalizer: requeue after %s, error %v", requeueAfter, err)
		}
	}
}

// State of a deleted InferenceService is discarded: one of the same name starts without state.
func TestForgetsDeletedInferenceService(t *testing.T) {
	model := inference("digits", func(s *v1beta1.InferenceService) { s.UID = "one" })
	s := newTestEnv(t, openShiftAPIs, annotated("ovms", routed), model)
	s.settings.RESTProxy.Enabled = false
	s.reconcileRoute("digits")
	s.remove(model)
	s.reconcileRoute("digits")
	if _, found := s.routes.states.Get(client.ObjectKeyFromObject(model)); found {
		t.Error("the state of the deleted InferenceService was not deleted")
	}
	s.create(inference("digits", func(s *v1beta1.InferenceService) { s.UID = "two" }))
	s.reconcileRoute("digits")
	s.takeEvents()
	s.remove(model)
	s.create(inference("digits", func(s *v1beta1.InferenceService) { s.UID = "three" })) // with no reconcile in between
	s.reconcileRoute("digits")
	if eventText := s.takeEvents(); !strings.Contains(eventText, ReasonNoRoute) {
		t.Errorf("Events on the third InferenceService: %q, want %s", eventText, ReasonNoRoute)
	}
}

// Without Routes, the exposure determines the kind of object, and those of another kind are deleted.
func TestRoutesFollowExposure(t *testing.T) {
	runtime, model := annotated("ovms", routed), inference("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
	s := newTestEnv(t, capability.NewSet(capability.HTTPRoute, capability.InferenceService, capability.ServingRuntime), runtime, model)
	for _, step := range []struct {
		kind string
		want []string
	}{
		{config.ExposeAuto, nil},
		{config.ExposeIngress, []string{"apply Ingress digits"}},
		{config.ExposeGateway, []string{"apply HTTPRoute digits", "delete Ingress digits"}},
		{config.ExposeAuto, []string{"delete HTTPRoute digits"}},
	} {
		s.routes.exposure = exposure{Exposure: config.Exposure{Kind: step.kind, IngressDomain: "example.org"}, gateway: resources.Gateway{Name: "g", Namespace: "n"}}
		if writes := s.reconcileRoute("digits"); !slices.Equal(writes, step.want) {
			t.Errorf("%s: writes %q, want %q", step.kind, writes, step.want)
		}
		s.expectNoRequests(step.kind, func() []string { return s.reconcileRoute("digits") })
	}
}

// Only Gateways receive the CA of an issued certificate.
func TestGatewaysTrustIssuedCA(t *testing.T) {
	s := newTestEnv(t, capability.NewSet(capability.BackendTLSPolicy, capability.HTTPRoute), deployment(1))
	s.settings.AuthProxy.Mode = meshsettings.AuthProxyAlways
	s.namespaces.exposure.Kind = config.ExposeIngress
	if writes := s.reconcileNamespace(); slices.Contains(writes, "apply BackendTLSPolicy "+CAObjectName) {
		t.Errorf("exposure by Ingress: unexpected writes %q", writes)
	}
	s.reconcileNamespace() // the second reconcile reads the written objects
	s.namespaces.exposure.Kind = config.ExposeGateway
	if writes := s.reconcileNamespace(); len(writes) > 0 {
		t.Errorf("exposure by an unnamed Gateway: writes %q, want none", writes)
	}
	s.namespaces.exposure.gateway.Namespace = "gateways"
	if writes := s.reconcileNamespace(); !slices.Equal(writes, []string{"apply ConfigMap " + CAObjectName, "apply BackendTLSPolicy " + CAObjectName}) {
		t.Errorf("exposure by a Gateway: writes %q, want the CA and its policy", writes)
	}
	s.expectNoRequests("with the CA", s.reconcileNamespace)
	var issued corev1.Secret
	var bundle corev1.ConfigMap
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(capability.BackendTLSPolicy)
	if !s.exists(&issued, authproxy.TLSSecret) || !s.exists(&bundle, CAObjectName) || !s.exists(policy, CAObjectName) || bundle.Data["ca.crt"] != string(issued.Data["ca.crt"]) {
		t.Error("the CA ConfigMap does not contain the issued certificate")
	}
	if err := s.server.Delete(t.Context(), &issued); err != nil {
		t.Fatal(err)
	}
	before := string(issued.Data["ca.crt"])
	s.reconcileNamespace()
	if !s.exists(&issued, authproxy.TLSSecret) || !s.exists(&bundle, CAObjectName) || bundle.Data["ca.crt"] != string(issued.Data["ca.crt"])+before {
		t.Error("the CA ConfigMap does not contain the certificate that pods still serve")
	}
	s.settings.AuthProxy.Mode = meshsettings.AuthProxyNever
	if writes := s.reconcileNamespace(); !slices.Contains(writes, "delete BackendTLSPolicy "+CAObjectName) || !slices.Contains(writes, "delete ConfigMap "+CAObjectName) {
		t.Errorf("without the proxy: writes %q, want the deletion of the CA and its policy", writes)
	}
}
