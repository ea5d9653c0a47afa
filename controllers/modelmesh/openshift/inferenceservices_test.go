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

var serving15 = capability.NewSet(capability.Route, capability.OpenShiftIngress, capability.UserGroup,
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
	s := newTestEnv(t, serving15, runtime, model)
	if writes := s.route("digits"); len(writes) > 0 {
		t.Fatalf("without the annotation %q", writes)
	}
	runtime.Annotations = routed
	s.update(runtime)
	if writes := s.route("digits"); !slices.Equal(writes, []string{"apply Route digits"}) {
		t.Fatalf("with the annotation %q", writes)
	}
	s.expectNoRequests("published", func() []string { return s.route("digits") })
	runtime.Annotations = guarded
	s.update(runtime)
	s.route("digits")
	got := routeObject()
	s.has(got, "digits")
	if port, _, _ := unstructured.NestedInt64(got.Object, "spec", "port", "targetPort"); port != 8443 {
		t.Errorf("guarded by port %d", port)
	}
	runtime.Annotations = nil
	s.update(runtime)
	if writes := s.route("digits"); !slices.Equal(writes, []string{"delete Route digits"}) {
		t.Errorf("without the annotation again %q", writes)
	}
	s.expectNoRequests("not published", func() []string { return s.route("digits") })
}

// A model does not get a reserved name of registries and Ray clusters, unless it is published already.
func TestReservedNamesOfRoutes(t *testing.T) {
	for _, name := range []string{"ray-dashboard-vic", "rayclient-vic", "reg-https", "reg-http"} {
		s := newTestEnv(t, serving15, annotated("ovms", routed), inference(name, func(s *v1beta1.InferenceService) { s.UID = "uid" }))
		if writes := s.route(name); len(writes) > 0 {
			t.Errorf("%s: unexpected writes: %q", name, writes)
		}
		if said := s.takeEvents(); !strings.Contains(said, "registries and Ray clusters have names such as "+name) {
			t.Errorf("%s: said %q", name, said)
		}
		before := routeObject()
		before.SetNamespace("team")
		before.SetName(name)
		before.SetLabels(map[string]string{LabelInferenceService: name})
		s = newTestEnv(t, serving15, annotated("ovms", routed), inference(name, func(s *v1beta1.InferenceService) { s.UID = "uid" }))
		s.create(before)
		if _, _, err := s.reconcile(s.routes, "team", name); err != nil || strings.Contains(s.takeEvents(), "names such as") {
			t.Errorf("%s: one that was published before: %v", name, err)
		}
	}
}

// A Route requires the deployment mode, an enabled namespace, the Route API and a runtime.
func TestNoRouteWithoutPrerequisites(t *testing.T) {
	for name, change := range map[string]func(*testEnv, *v1beta1.InferenceService){
		"not served": func(s *testEnv, _ *v1beta1.InferenceService) { s.enabled = false },
		"no Routes": func(s *testEnv, _ *v1beta1.InferenceService) {
			s.served = capability.NewSet(capability.InferenceService)
		},
		"not for us": func(_ *testEnv, m *v1beta1.InferenceService) {
			m.Annotations = map[string]string{v1beta1.AnnotationDeploymentMode: "RawDeployment"}
		},
		"no storage": func(_ *testEnv, m *v1beta1.InferenceService) { m.Spec.Predictor.Model.Storage = nil },
		"no runtimes": func(s *testEnv, _ *v1beta1.InferenceService) {
			s.served = capability.NewSet(capability.Route, capability.InferenceService)
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := inference("digits")
			s := newTestEnv(t, serving15, annotated("ovms", routed))
			change(s, model)
			s.create(model)
			if writes := s.route("digits"); len(writes) > 0 {
				t.Errorf("written %q", writes)
			}
		})
	}
}

// A Route that is not desired is deleted.
func TestDeletesRouteWhenNotDesired(t *testing.T) {
	model := inference("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
	s := newTestEnv(t, serving15, annotated("ovms", routed), model)
	s.route("digits")
	model.Annotations[v1beta1.AnnotationDeploymentMode] = "RawDeployment"
	s.update(model)
	if writes := s.route("digits"); !slices.Equal(writes, []string{"delete Route digits"}) {
		t.Errorf("written %q", writes)
	}
}

// Routes of the legacy controller are adopted, and deleted if not desired.
func TestAdoptsLegacyRoutes(t *testing.T) {
	for _, annotations := range []map[string]string{routed, nil} {
		model := inference("digits", func(s *v1beta1.InferenceService) { s.UID = "uid-of-digits" })
		s := newTestEnv(t, serving15, annotated("ovms", annotations), model)
		old := routeObject()
		old.SetNamespace("team")
		old.SetName("digits")
		old.SetLabels(map[string]string{LabelInferenceService: "digits"})
		old.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(model, v1beta1.GroupVersion.WithKind("InferenceService"))})
		old.Object["spec"] = map[string]any{"host": "digits-team.apps.example.com", "path": "/v2/models/digits"}
		if err := s.server.Create(t.Context(), old, client.FieldOwner("manager")); err != nil {
			t.Fatal(err)
		}
		writes := s.route("digits")
		got := routeObject()
		found := s.has(got, "digits")
		host, _, _ := unstructured.NestedString(got.Object, "spec", "host")
		if found != (annotations != nil) || found && (host != "digits-team.apps.example.com" || !isManaged(got)) {
			t.Errorf("there %t with host %s, written %q", found, host, writes)
		}
		s.expectNoRequests("taken over", func() []string { return s.route("digits") })
	}
}

// One Event reports why no Route is created.
func TestProblemsAreReported(t *testing.T) {
	model := inference("digits")
	s := newTestEnv(t, serving15, annotated("ovms", routed), model)
	s.settings.RESTProxy.Enabled = false
	s.route("digits")
	s.route("digits")
	if said := s.takeEvents(); strings.Count(said, ReasonNoRoute) != 1 || !strings.Contains(said, "restProxy.enabled is false") {
		t.Errorf("said %q", said)
	}
	s.settings.RESTProxy.Enabled = true
	s.route("digits")
	s.settings.RESTProxy.Enabled = false
	s.route("digits")
	if said := s.takeEvents(); strings.Count(said, ReasonNoRoute) != 1 {
		t.Errorf("the same after a while: %q", said)
	}
}

func TestForeignRoute(t *testing.T) {
	s := newTestEnv(t, serving15, annotated("ovms", routed), inference("digits"))
	foreign := routeObject()
	foreign.SetNamespace("team")
	foreign.SetName("digits")
	s.create(foreign)
	_, again, err := s.reconcile(s.routes, "team", "digits")
	if err != nil || again != reconciler.RequeueBlocked || !strings.Contains(s.takeEvents(), "was not created by this operator") {
		t.Errorf("again after %s, error %v", again, err)
	}
}

// [O3] The Route verifies a mesh with TLS by the CA in its Secret, which is read again after changes.
func TestRouteTrustsMeshCA(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "mesh-tls"}, Data: map[string][]byte{"tls.crt": []byte("LEAF")}}
	s := newTestEnv(t, serving15, annotated("ovms", routed), inference("digits"))
	meshTLS("")(&s.settings)
	s.route("digits")
	if said := s.takeEvents(); !strings.Contains(said, "Secret mesh-tls holds no certificate") {
		t.Errorf("said %q", said)
	}
	trust := func() string {
		got := routeObject()
		s.has(got, "digits")
		text, _, _ := unstructured.NestedString(got.Object, "spec", "tls", "destinationCACertificate")
		return text
	}
	s.create(secret)
	s.route("digits")
	if got := trust(); got != "LEAF" {
		t.Errorf("trusts %q", got)
	}
	s.expectNoRequests("known", func() []string { return s.route("digits") })
	secret.Data["ca.crt"] = []byte("CA")
	s.update(secret)
	s.route("digits")
	if got := trust(); got != "CA" {
		t.Errorf("trusts %q", got)
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
		"held by it alone":        {[]string{Finalizer}, func(*v1beta1.InferenceService) {}, true, true},
		"held by KServe, too":     {[]string{kserve, Finalizer}, func(*v1beta1.InferenceService) {}, true, false},
		"not deleted":             {[]string{Finalizer}, func(*v1beta1.InferenceService) {}, false, false},
		"of another mode":         {[]string{Finalizer}, func(s *v1beta1.InferenceService) { s.Annotations = nil }, true, false},
		"held by a foreign one":   {[]string{"example.com/hold"}, func(*v1beta1.InferenceService) {}, true, false},
		"without Routes, as well": {[]string{Finalizer}, func(*v1beta1.InferenceService) {}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			served := serving15
			if strings.HasPrefix(name, "without") {
				served = capability.NewSet(capability.InferenceService)
			}
			model := inference("digits", func(s *v1beta1.InferenceService) { s.Finalizers = c.finalizers }, c.change)
			s := newTestEnv(t, served, model)
			if c.deleted {
				s.remove(model)
			}
			s.route("digits")
			if gone := !s.has(&v1beta1.InferenceService{}, "digits"); gone != c.gone {
				t.Errorf("gone %t", gone)
			}
		})
	}
}

func TestRouteErrors(t *testing.T) {
	model := inference("digits", func(s *v1beta1.InferenceService) { s.Finalizers = []string{Finalizer} })
	s := newTestEnv(t, serving15, annotated("ovms", routed), model)
	for name, set := range map[string]*error{"settings": &s.broken, "whether it is served": &s.unknown} {
		*set = errDown
		if writes, _, err := s.reconcile(s.routes, "team", "digits"); !errors.Is(err, errDown) || len(writes) > 0 {
			t.Errorf("%s: written %q, error %v", name, writes, err)
		}
		*set = nil
	}
	s.refuse = func(string, string) error { return errDown }
	if _, _, err := s.reconcile(s.routes, "team", "digits"); !errors.Is(err, errDown) {
		t.Errorf("the Route: error %v", err)
	}
	s.refuse = func(string, string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "routes"}, "digits", errors.New("custom resource definition is terminating"))
	}
	if _, again, err := s.reconcile(s.routes, "team", "digits"); err != nil || again != reconciler.RequeueSoon {
		t.Errorf("an API that goes: again after %s, error %v", again, err)
	}
	s.remove(model)
	for cause, fails := range map[error]bool{errDown: true, apierrors.NewConflict(schema.GroupResource{}, "digits", errDown): false, apierrors.NewNotFound(schema.GroupResource{}, "digits"): false} {
		s.refuse = func(string, string) error { return cause }
		_, again, err := s.reconcile(s.routes, "team", "digits")
		if (err != nil) != fails || (again > 0) != apierrors.IsConflict(cause) {
			t.Errorf("the finalizer: again after %s, error %v", again, err)
		}
	}
}

// State of a deleted InferenceService is discarded: one of the same name starts without state.
func TestForgetsDeletedInferenceService(t *testing.T) {
	model := inference("digits", func(s *v1beta1.InferenceService) { s.UID = "one" })
	s := newTestEnv(t, serving15, annotated("ovms", routed), model)
	s.settings.RESTProxy.Enabled = false
	s.route("digits")
	s.remove(model)
	s.route("digits")
	if s.routes.states.Len() > 0 {
		t.Error("the state of the deleted InferenceService was not deleted")
	}
	s.create(inference("digits", func(s *v1beta1.InferenceService) { s.UID = "two" }))
	s.route("digits")
	s.takeEvents()
	s.remove(model)
	s.create(inference("digits", func(s *v1beta1.InferenceService) { s.UID = "three" })) // with no reconcile in between
	s.route("digits")
	if said := s.takeEvents(); !strings.Contains(said, ReasonNoRoute) {
		t.Errorf("no Event on the third: %q", said)
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
		if writes := s.route("digits"); !slices.Equal(writes, step.want) {
			t.Errorf("%s: written %q, want %q", step.kind, writes, step.want)
		}
		s.expectNoRequests(step.kind, func() []string { return s.route("digits") })
	}
}

// Only Gateways receive the CA of an issued certificate.
func TestGatewaysTrustIssuedCA(t *testing.T) {
	s := newTestEnv(t, capability.NewSet(capability.BackendTLSPolicy, capability.HTTPRoute), deployment(1))
	s.settings.AuthProxy.Mode = meshsettings.AuthProxyAlways
	s.namespaces.exposure.Kind = config.ExposeIngress
	if writes := s.must(); slices.Contains(writes, "apply BackendTLSPolicy "+CAObjectName) {
		t.Errorf("behind Ingresses %q", writes)
	}
	s.must() // what was written is read once
	s.namespaces.exposure.Kind = config.ExposeGateway
	if writes := s.must(); len(writes) > 0 {
		t.Errorf("behind a Gateway that is not named %q", writes)
	}
	s.namespaces.exposure.gateway.Namespace = "gateways"
	if writes := s.must(); !slices.Equal(writes, []string{"apply ConfigMap " + CAObjectName, "apply BackendTLSPolicy " + CAObjectName}) {
		t.Errorf("behind Gateways %q", writes)
	}
	s.expectNoRequests("trusted", s.must)
	var issued corev1.Secret
	var bundle corev1.ConfigMap
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(capability.BackendTLSPolicy)
	if !s.has(&issued, authproxy.TLSSecret) || !s.has(&bundle, CAObjectName) || !s.has(policy, CAObjectName) || bundle.Data["ca.crt"] != string(issued.Data["ca.crt"]) {
		t.Error("the CA ConfigMap does not contain the issued certificate")
	}
	if err := s.server.Delete(t.Context(), &issued); err != nil {
		t.Fatal(err)
	}
	before := string(issued.Data["ca.crt"])
	s.must()
	if !s.has(&issued, authproxy.TLSSecret) || !s.has(&bundle, CAObjectName) || bundle.Data["ca.crt"] != string(issued.Data["ca.crt"])+before {
		t.Error("the CA ConfigMap does not contain the certificate that pods still serve")
	}
	s.settings.AuthProxy.Mode = meshsettings.AuthProxyNever
	if writes := s.must(); !slices.Contains(writes, "delete BackendTLSPolicy "+CAObjectName) || !slices.Contains(writes, "delete ConfigMap "+CAObjectName) {
		t.Errorf("without a proxy %q", writes)
	}
}
