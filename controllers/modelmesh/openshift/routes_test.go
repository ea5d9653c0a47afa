package openshift

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/apis/serving/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/authproxy"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/pkg/resources"
)

// inference returns an InferenceService for ModelMesh.
func inference(name string, changes ...func(*v1beta1.InferenceService)) *v1beta1.InferenceService {
	path := "models/" + name
	s := &v1beta1.InferenceService{
		TypeMeta: metav1.TypeMeta{APIVersion: "serving.kserve.io/v1beta1", Kind: "InferenceService"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, Generation: 1, Annotations: map[string]string{v1beta1.AnnotationDeploymentMode: v1beta1.DeploymentModeModelMesh},
		},
		Spec: v1beta1.InferenceServiceSpec{Predictor: v1beta1.PredictorSpec{Model: &v1beta1.ModelSpec{
			ModelFormat:        v1beta1.ModelFormat{Name: "onnx"},
			PredictorExtension: v1beta1.PredictorExtension{Storage: &v1beta1.ModelStorage{Path: &path}},
		}}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// newRouteOptions returns the options for a runtime with the annotations.
func newRouteOptions(served capability.Set, annotations map[string]string, changes ...func(*meshsettings.Settings)) routeOptions {
	s := meshsettings.Default()
	for _, change := range changes {
		change(&s)
	}
	return routeOptions{served: served, settings: s, runtimeAnnotations: annotations, meshCA: "PEM", proxy: authproxy.Decide(s, "team", served)}
}

func meshTLS(auth string) func(*meshsettings.Settings) {
	return func(s *meshsettings.Settings) { s.TLS = meshsettings.TLS{SecretName: "mesh-tls", ClientAuth: auth} }
}

var (
	routed  = map[string]string{pkgmodelmesh.AnnotationRoute: "true"}
	guarded = map[string]string{pkgmodelmesh.AnnotationRoute: "true", pkgmodelmesh.AnnotationAuth: "true"}
)

// [O10] [modelmesh-102] The Route of section 14, and the cases in which the legacy controller created a wrong one.
func TestBuildRoute(t *testing.T) {
	never := func(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyNever }
	for name, c := range map[string]struct {
		publication routeOptions
		port        int64
		tls         map[string]any
		problem     string // part of it
	}{
		"open":                  {newRouteOptions(openShift, routed), 8008, map[string]any{"termination": "edge"}, ""},
		"another port":          {newRouteOptions(openShift, routed, func(s *meshsettings.Settings) { s.RESTProxy.Port = 9008 }), 9008, map[string]any{"termination": "edge"}, ""},
		"guarded":               {newRouteOptions(openShift, guarded), 8443, map[string]any{"termination": "reencrypt"}, ""},
		"not requested":         {newRouteOptions(openShift, map[string]string{pkgmodelmesh.AnnotationAuth: "true"}), 0, nil, ""},
		"enable-route false":    {newRouteOptions(openShift, map[string]string{pkgmodelmesh.AnnotationRoute: "false"}), 0, nil, ""},
		"no runtime":            {newRouteOptions(openShift, nil), 0, nil, ""},
		"guard disabled":        {newRouteOptions(openShift, guarded, never), 0, nil, "authProxy.mode is never"},
		"REST proxy disabled":   {newRouteOptions(openShift, routed, func(s *meshsettings.Settings) { s.RESTProxy.Enabled = false }), 0, nil, "restProxy.enabled is false"},
		"TLS":                   {newRouteOptions(openShift, routed, meshTLS("")), 8008, map[string]any{"termination": "reencrypt", "destinationCACertificate": "PEM"}, ""},
		"TLS, guarded":          {newRouteOptions(openShift, guarded, meshTLS("require")), 8443, map[string]any{"termination": "reencrypt"}, ""},
		"TLS, client must show": {newRouteOptions(openShift, routed, meshTLS("require")), 0, nil, "set annotation enable-auth"},
		"TLS without a certificate": {func() routeOptions {
			p := newRouteOptions(openShift, routed, meshTLS(""))
			p.meshCA = ""
			return p
		}(), 0, nil, "Secret mesh-tls holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			desired, problem := buildRoute(inference("digits"), c.publication)
			if (c.problem == "") != (problem == "") || !strings.Contains(problem, c.problem) {
				t.Errorf("problem %q, want %q", problem, c.problem)
			}
			if c.tls == nil {
				if len(desired) > 0 {
					t.Errorf("a Route that is not to be")
				}
				return
			}
			out, err := apply.Render(desired, modelmesh.ComponentName, inference("digits"))
			if err != nil || len(out) != 1 {
				t.Fatalf("%d objects, error %v", len(out), err)
			}
			c.tls["insecureEdgeTerminationPolicy"] = "Redirect"
			want := map[string]any{
				"path": "/v2/models/digits", "port": map[string]any{"targetPort": c.port}, "tls": c.tls,
				"to": map[string]any{"kind": "Service", "name": "modelmesh-serving", "weight": int64(100)},
			}
			if diff := cmp.Diff(want, out[0].Object["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkIdentity(t, out[0])
		})
	}
}

func checkIdentity(t *testing.T, route *unstructured.Unstructured) {
	t.Helper()
	if route.GetName() != "digits" || route.GetNamespace() != "team" || route.GetLabels()["inferenceservice-name"] != "digits" {
		t.Errorf("metadata %v", route.Object["metadata"])
	}
	if owner := metav1.GetControllerOf(route); owner == nil || owner.Kind != "InferenceService" || owner.Name != "digits" {
		t.Errorf("owner %v", owner)
	}
	if got := route.GetAnnotations()["haproxy.router.openshift.io/timeout"]; got != "30s" && route.GetKind() == "Route" {
		t.Errorf("timeout %s", got)
	}
}

func TestRouteTimeout(t *testing.T) {
	ten := int64(10)
	for name, c := range map[string]struct {
		change func(*v1beta1.InferenceService)
		want   string
	}{
		"no timeout set": {func(*v1beta1.InferenceService) {}, "30s"},
		"of the model":   {func(s *v1beta1.InferenceService) { s.Spec.Predictor.Timeout = &ten }, "10s"},
		"two components": {func(s *v1beta1.InferenceService) { s.Spec.Transformer = &v1beta1.Component{Timeout: &ten} }, "40s"},
		"all components": {func(s *v1beta1.InferenceService) {
			s.Spec.Transformer, s.Spec.Explainer = &v1beta1.Component{}, &v1beta1.Component{}
		}, "90s"},
		"by the annotation": {func(s *v1beta1.InferenceService) {
			s.Annotations[AnnotationTimeout] = "5m"
			s.Spec.Predictor.Timeout = &ten
		}, "5m"},
	} {
		if got := routeTimeout(inference("m", c.change)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// runtimeOf returns a multi-model runtime for onnx, with its hour of creation.
func runtimeOf(name string, hour int, changes ...func(*v1alpha1.ServingRuntime)) v1alpha1.ServingRuntime {
	r := v1alpha1.ServingRuntime{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, Annotations: map[string]string{"is": name},
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC)),
		},
		Spec: v1alpha1.ServingRuntimeSpec{
			MultiModel: new(true), SupportedModelFormats: []v1alpha1.SupportedModelFormat{{Name: "onnx", AutoSelect: new(true)}},
		},
	}
	for _, change := range changes {
		change(&r)
	}
	return r
}

func ofCluster(r v1alpha1.ServingRuntime) v1alpha1.ClusterServingRuntime {
	r.Namespace = ""
	return v1alpha1.ClusterServingRuntime{ObjectMeta: r.ObjectMeta, Spec: r.Spec}
}

// The annotations are those of the runtime that the mesh would choose.
func TestServingRuntimeAnnotations(t *testing.T) {
	disabled := func(r *v1alpha1.ServingRuntime) { r.Spec.Disabled = new(true) }
	single := func(r *v1alpha1.ServingRuntime) { r.Spec.MultiModel = nil }
	byHand := func(r *v1alpha1.ServingRuntime) { r.Spec.SupportedModelFormats[0].AutoSelect = nil }
	other := func(r *v1alpha1.ServingRuntime) { r.Spec.SupportedModelFormats[0].Name = "sklearn" }
	onnx := inference("m")
	pinned := inference("m", func(s *v1beta1.InferenceService) { s.Spec.Predictor.Model.Runtime = new("chosen") })
	rest := inference("m", func(s *v1beta1.InferenceService) { s.Spec.Predictor.Model.ProtocolVersion = new("v2") })
	grpc := func(r *v1alpha1.ServingRuntime) { r.Spec.ProtocolVersions = []string{"grpc-v2"} }
	for name, c := range map[string]struct {
		model      *v1beta1.InferenceService
		namespaced []v1alpha1.ServingRuntime
		cluster    []v1alpha1.ServingRuntime
		want       string
	}{
		"none":                   {onnx, nil, nil, ""},
		"the only one":           {onnx, []v1alpha1.ServingRuntime{runtimeOf("a", 1)}, nil, "a"},
		"the newest":             {onnx, []v1alpha1.ServingRuntime{runtimeOf("a", 1), runtimeOf("b", 3), runtimeOf("c", 2)}, nil, "b"},
		"of equal age the first": {onnx, []v1alpha1.ServingRuntime{runtimeOf("b", 1), runtimeOf("a", 1)}, nil, "a"},
		"not a disabled one":     {onnx, []v1alpha1.ServingRuntime{runtimeOf("a", 1), runtimeOf("b", 2, disabled)}, nil, "a"},
		"single-model runtime":   {onnx, []v1alpha1.ServingRuntime{runtimeOf("b", 2, single)}, nil, ""},
		"not one chosen by hand": {onnx, []v1alpha1.ServingRuntime{runtimeOf("b", 2, byHand)}, nil, ""},
		"not another format":     {onnx, []v1alpha1.ServingRuntime{runtimeOf("b", 2, other)}, nil, ""},
		"the one that is named":  {pinned, []v1alpha1.ServingRuntime{runtimeOf("newest", 9), runtimeOf("chosen", 1, byHand)}, nil, "chosen"},
		"named, of the cluster":  {pinned, []v1alpha1.ServingRuntime{runtimeOf("newest", 9)}, []v1alpha1.ServingRuntime{runtimeOf("chosen", 1)}, "chosen"},
		"runtime of the namespace precedes that of the cluster": {onnx, []v1alpha1.ServingRuntime{runtimeOf("a", 1)}, []v1alpha1.ServingRuntime{runtimeOf("b", 9)}, "a"},
		"of the cluster":         {onnx, nil, []v1alpha1.ServingRuntime{runtimeOf("b", 9)}, "b"},
		"hidden by its name":     {onnx, []v1alpha1.ServingRuntime{runtimeOf("b", 1, disabled)}, []v1alpha1.ServingRuntime{runtimeOf("b", 9)}, ""},
		"REST through the proxy": {rest, []v1alpha1.ServingRuntime{runtimeOf("a", 9), runtimeOf("b", 1, grpc)}, nil, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			model, ok, err := pkgmodelmesh.FromInferenceService(c.model)
			if !ok || err != nil {
				t.Fatalf("no model: %t %v", ok, err)
			}
			runtimes := map[string]modelmesh.Runtime{}
			for _, r := range c.cluster {
				r := ofCluster(r)
				runtimes[r.Name] = modelmesh.Runtime{Object: &r, Spec: &r.Spec}
			}
			for _, r := range c.namespaced {
				runtimes[r.Name] = modelmesh.Runtime{Object: &r, Spec: &r.Spec}
			}
			got := servingRuntimeAnnotations(model, runtimes, true)
			if got["is"] != c.want || (got == nil) != (c.want == "") {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
	bare := runtimeOf("a", 1, func(r *v1alpha1.ServingRuntime) { r.Annotations = nil })
	model, _, _ := pkgmodelmesh.FromInferenceService(onnx)
	if got := servingRuntimeAnnotations(model, map[string]modelmesh.Runtime{"a": {Object: &bare, Spec: &bare.Spec}}, true); got == nil || len(got) > 0 {
		t.Errorf("a runtime without annotations is a runtime: %v", got)
	}
}

// On other clusters, models are published as the exposure configures, if their runtime requests it.
func TestBuildRouteForOtherKinds(t *testing.T) {
	always := func(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyAlways }
	restricted := func(s *meshsettings.Settings) { s.NetworkPolicyRestricted = true }
	gateway, ingress := config.Exposure{Kind: config.ExposeGateway}, config.Exposure{Kind: config.ExposeIngress, IngressDomain: "example.org", IngressClass: "edge"}
	plain := capability.NewSet(capability.HTTPRoute)
	for name, c := range map[string]struct {
		exposure    config.Exposure
		publication routeOptions
		kind        string
		port        int64
		problem     string // part of it
	}{
		"by default":                           {config.Exposure{Kind: config.ExposeAuto}, newRouteOptions(plain, routed), "", 0, ""},
		"not requested":                        {ingress, newRouteOptions(plain, nil), "", 0, ""},
		"gateway":                              {gateway, newRouteOptions(plain, routed), "HTTPRoute", 8008, ""},
		"gateway, guarded":                     {gateway, newRouteOptions(plain, guarded, always), "HTTPRoute", 8443, ""},
		"no gateways":                          {gateway, newRouteOptions(capability.NewSet(), routed), "", 0, "there is no HTTPRoute, because the cluster does not serve the kind"},
		"ingress":                              {ingress, newRouteOptions(plain, routed), "Ingress", 8008, ""},
		"ingress, guarded":                     {ingress, newRouteOptions(plain, guarded, always), "Ingress", 8443, ""},
		"ingress, TLS":                         {ingress, newRouteOptions(plain, routed, meshTLS("")), "Ingress", 8008, ""},
		"no guard":                             {ingress, newRouteOptions(plain, guarded), "", 0, "there is no Ingress, because annotation enable-auth is set and authProxy.mode is auto"},
		"REST open, closed by a NetworkPolicy": {ingress, newRouteOptions(plain, routed, always), "", 0, "the NetworkPolicy closes REST"},
		"restricted":                           {gateway, newRouteOptions(plain, routed, restricted), "", 0, "the NetworkPolicy closes REST"},
		"restricted, no policy":                {gateway, newRouteOptions(plain, routed, restricted, func(s *meshsettings.Settings) { s.NetworkPolicy = false }), "HTTPRoute", 8008, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.publication.exposure = exposure{c.exposure, resources.Gateway{Name: "public", Namespace: "gateways"}}
			desired, problem := buildRoute(inference("digits"), c.publication)
			if (c.problem == "") != (problem == "") || !strings.Contains(problem, c.problem) {
				t.Errorf("problem %q, want %q", problem, c.problem)
			}
			out, err := apply.Render(desired, modelmesh.ComponentName, inference("digits"))
			if err != nil || len(out) > 1 || (len(out) == 0) != (c.kind == "") {
				t.Fatalf("%d objects, error %v", len(out), err)
			}
			if c.kind == "" {
				return
			}
			checkIdentity(t, out[0])
			rules, _, _ := unstructured.NestedSlice(out[0].Object, "spec", "rules")
			if diff := cmp.Diff(publishedRules(c.kind, c.port), rules); diff != "" || out[0].GetKind() != c.kind {
				t.Errorf("%s (-want +got):\n%s", out[0].GetKind(), diff)
			}
			tls := out[0].GetAnnotations()["nginx.ingress.kubernetes.io/backend-protocol"] == "HTTPS"
			if want := c.kind == "Ingress" && (c.port == 8443 || c.publication.settings.TLS.Enabled()); tls != want {
				t.Errorf("TLS to the server %t", tls)
			}
		})
	}
}

// publishedRules returns rules that match only one model.
func publishedRules(kind string, port int64) []any {
	if kind == "Ingress" {
		return []any{map[string]any{"host": "digits-team.example.org", "http": map[string]any{"paths": []any{map[string]any{
			"path": "/v2/models/digits", "pathType": "Prefix",
			"backend": map[string]any{"service": map[string]any{"name": "modelmesh-serving", "port": map[string]any{"number": port}}},
		}}}}}
	}
	return []any{map[string]any{
		"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/modelmesh/team/v2/models/digits"}}},
		"filters": []any{map[string]any{"type": "URLRewrite", "urlRewrite": map[string]any{"path": map[string]any{
			"type": "ReplacePrefixMatch", "replacePrefixMatch": "/v2/models/digits",
		}}}},
		"backendRefs": []any{map[string]any{"group": "", "kind": "Service", "name": "modelmesh-serving", "port": port, "weight": int64(1)}},
		"timeouts":    map[string]any{"request": "0s"},
	}}
}

// A name and a namespace that are too long together are not a valid host. Names with dots could match the host of another namespace.
func TestNoHostForLongNames(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", 59), "digits.more"} {
		p := newRouteOptions(capability.NewSet(), routed)
		p.exposure.Exposure = config.Exposure{Kind: config.ExposeIngress, IngressDomain: "example.org"}
		if desired, problem := buildRoute(inference(name), p); len(desired) > 0 || !strings.Contains(problem, "is not a valid label of a host name") {
			t.Errorf("%s: %d objects, problem %q", name, len(desired), problem)
		}
	}
}
