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

// newInferenceService returns an InferenceService for ModelMesh.
func newInferenceService(name string, changes ...func(*v1beta1.InferenceService)) *v1beta1.InferenceService {
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

// newRouteOptions returns the options for a runtime with the given annotations.
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
	withRoute        = map[string]string{pkgmodelmesh.AnnotationRoute: "true"}
	withRouteAndAuth = map[string]string{pkgmodelmesh.AnnotationRoute: "true", pkgmodelmesh.AnnotationAuth: "true"}
)

// [O10] [modelmesh-102] The Route has the port and TLS settings of the server, also where those of the legacy controller were wrong.
func TestBuildRoute(t *testing.T) {
	authProxyNever := func(s *meshsettings.Settings) { s.AuthProxy.Mode = meshsettings.AuthProxyNever }
	for name, c := range map[string]struct {
		options routeOptions
		port    int64
		tls     map[string]any
		problem string // a part of the message
	}{
		"no authentication":       {newRouteOptions(openShift, withRoute), 8008, map[string]any{"termination": "edge"}, ""},
		"another port":            {newRouteOptions(openShift, withRoute, func(s *meshsettings.Settings) { s.RESTProxy.Port = 9008 }), 9008, map[string]any{"termination": "edge"}, ""},
		"authentication":          {newRouteOptions(openShift, withRouteAndAuth), 8443, map[string]any{"termination": "reencrypt"}, ""},
		"not requested":           {newRouteOptions(openShift, map[string]string{pkgmodelmesh.AnnotationAuth: "true"}), 0, nil, ""},
		"enable-route false":      {newRouteOptions(openShift, map[string]string{pkgmodelmesh.AnnotationRoute: "false"}), 0, nil, ""},
		"no runtime":              {newRouteOptions(openShift, nil), 0, nil, ""},
		"auth proxy disabled":     {newRouteOptions(openShift, withRouteAndAuth, authProxyNever), 0, nil, "authProxy.mode is never"},
		"REST proxy disabled":     {newRouteOptions(openShift, withRoute, func(s *meshsettings.Settings) { s.RESTProxy.Enabled = false }), 0, nil, "restProxy.enabled is false"},
		"TLS":                     {newRouteOptions(openShift, withRoute, meshTLS("")), 8008, map[string]any{"termination": "reencrypt", "destinationCACertificate": "PEM"}, ""},
		"TLS, authentication":     {newRouteOptions(openShift, withRouteAndAuth, meshTLS("require")), 8443, map[string]any{"termination": "reencrypt"}, ""},
		"TLS, client certificate": {newRouteOptions(openShift, withRoute, meshTLS("require")), 0, nil, "set annotation enable-auth"},
		"TLS without a certificate": {func() routeOptions {
			p := newRouteOptions(openShift, withRoute, meshTLS(""))
			p.meshCA = ""
			return p
		}(), 0, nil, "Secret mesh-tls holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			desired, problem := buildRoute(newInferenceService("digits"), c.options)
			if (c.problem == "") != (problem == "") || !strings.Contains(problem, c.problem) {
				t.Errorf("problem %q, want %q", problem, c.problem)
			}
			if c.tls == nil {
				if len(desired) > 0 {
					t.Errorf("%d objects, want none", len(desired))
				}
				return
			}
			out, err := apply.Render(desired, modelmesh.ComponentName, newInferenceService("digits"))
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
			checkMetadata(t, out[0])
		})
	}
}

func checkMetadata(t *testing.T, route *unstructured.Unstructured) {
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
		"default":     {func(*v1beta1.InferenceService) {}, "30s"},
		"predictor":   {func(s *v1beta1.InferenceService) { s.Spec.Predictor.Timeout = &ten }, "10s"},
		"transformer": {func(s *v1beta1.InferenceService) { s.Spec.Transformer = &v1beta1.Component{Timeout: &ten} }, "40s"},
		"all components": {func(s *v1beta1.InferenceService) {
			s.Spec.Transformer, s.Spec.Explainer = &v1beta1.Component{}, &v1beta1.Component{}
		}, "90s"},
		"annotation": {func(s *v1beta1.InferenceService) {
			s.Annotations[AnnotationTimeout] = "5m"
			s.Spec.Predictor.Timeout = &ten
		}, "5m"},
	} {
		if got := routeTimeout(newInferenceService("m", c.change)); got != c.want {
			t.Errorf("%s: timeout %s, want %s", name, got, c.want)
		}
	}
}

// newRuntime returns a multi-model runtime for onnx that was created at the given hour.
func newRuntime(name string, hour int, changes ...func(*v1alpha1.ServingRuntime)) v1alpha1.ServingRuntime {
	r := v1alpha1.ServingRuntime{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, Annotations: map[string]string{"name": name},
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

func toClusterRuntime(r v1alpha1.ServingRuntime) v1alpha1.ClusterServingRuntime {
	r.Namespace = ""
	return v1alpha1.ClusterServingRuntime{ObjectMeta: r.ObjectMeta, Spec: r.Spec}
}

// servingRuntimeAnnotations returns the annotations of the runtime that the model names, or of the supporting one with the highest
// precedence.
func TestServingRuntimeAnnotations(t *testing.T) {
	disabled := func(r *v1alpha1.ServingRuntime) { r.Spec.Disabled = new(true) }
	singleModel := func(r *v1alpha1.ServingRuntime) { r.Spec.MultiModel = nil }
	noAutoSelect := func(r *v1alpha1.ServingRuntime) { r.Spec.SupportedModelFormats[0].AutoSelect = nil }
	otherFormat := func(r *v1alpha1.ServingRuntime) { r.Spec.SupportedModelFormats[0].Name = "sklearn" }
	onnx := newInferenceService("m")
	withRuntime := newInferenceService("m", func(s *v1beta1.InferenceService) { s.Spec.Predictor.Model.Runtime = new("chosen") })
	rest := newInferenceService("m", func(s *v1beta1.InferenceService) { s.Spec.Predictor.Model.ProtocolVersion = new("v2") })
	grpc := func(r *v1alpha1.ServingRuntime) { r.Spec.ProtocolVersions = []string{"grpc-v2"} }
	for name, c := range map[string]struct {
		model      *v1beta1.InferenceService
		namespaced []v1alpha1.ServingRuntime
		cluster    []v1alpha1.ServingRuntime
		want       string
	}{
		"no runtime":                               {onnx, nil, nil, ""},
		"one runtime":                              {onnx, []v1alpha1.ServingRuntime{newRuntime("a", 1)}, nil, "a"},
		"newest":                                   {onnx, []v1alpha1.ServingRuntime{newRuntime("a", 1), newRuntime("b", 3), newRuntime("c", 2)}, nil, "b"},
		"same age, first by name":                  {onnx, []v1alpha1.ServingRuntime{newRuntime("b", 1), newRuntime("a", 1)}, nil, "a"},
		"disabled runtime":                         {onnx, []v1alpha1.ServingRuntime{newRuntime("a", 1), newRuntime("b", 2, disabled)}, nil, "a"},
		"single-model runtime":                     {onnx, []v1alpha1.ServingRuntime{newRuntime("b", 2, singleModel)}, nil, ""},
		"no autoSelect":                            {onnx, []v1alpha1.ServingRuntime{newRuntime("b", 2, noAutoSelect)}, nil, ""},
		"another format":                           {onnx, []v1alpha1.ServingRuntime{newRuntime("b", 2, otherFormat)}, nil, ""},
		"runtime of the model":                     {withRuntime, []v1alpha1.ServingRuntime{newRuntime("newest", 9), newRuntime("chosen", 1, noAutoSelect)}, nil, "chosen"},
		"ClusterServingRuntime of the model":       {withRuntime, []v1alpha1.ServingRuntime{newRuntime("newest", 9)}, []v1alpha1.ServingRuntime{newRuntime("chosen", 1)}, "chosen"},
		"ServingRuntime and ClusterServingRuntime": {onnx, []v1alpha1.ServingRuntime{newRuntime("a", 1)}, []v1alpha1.ServingRuntime{newRuntime("b", 9)}, "a"},
		"ClusterServingRuntime":                    {onnx, nil, []v1alpha1.ServingRuntime{newRuntime("b", 9)}, "b"},
		"disabled ServingRuntime of the same name": {onnx, []v1alpha1.ServingRuntime{newRuntime("b", 1, disabled)}, []v1alpha1.ServingRuntime{newRuntime("b", 9)}, ""},
		"REST through the proxy":                   {rest, []v1alpha1.ServingRuntime{newRuntime("a", 9), newRuntime("b", 1, grpc)}, nil, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			model, ok, err := pkgmodelmesh.FromInferenceService(c.model)
			if !ok || err != nil {
				t.Fatalf("FromInferenceService returned %t, error %v", ok, err)
			}
			runtimes := map[string]modelmesh.Runtime{}
			for _, r := range c.cluster {
				r := toClusterRuntime(r)
				runtimes[r.Name] = modelmesh.Runtime{Object: &r, Spec: &r.Spec}
			}
			for _, r := range c.namespaced {
				runtimes[r.Name] = modelmesh.Runtime{Object: &r, Spec: &r.Spec}
			}
			got := servingRuntimeAnnotations(model, runtimes, true)
			if got["name"] != c.want || (got == nil) != (c.want == "") {
				t.Errorf("annotations %v, want those of %q", got, c.want)
			}
		})
	}
	unannotated := newRuntime("a", 1, func(r *v1alpha1.ServingRuntime) { r.Annotations = nil })
	model, _, _ := pkgmodelmesh.FromInferenceService(onnx)
	if got := servingRuntimeAnnotations(model, map[string]modelmesh.Runtime{"a": {Object: &unannotated, Spec: &unannotated.Spec}}, true); got == nil || len(got) > 0 {
		t.Errorf("annotations %v of a runtime without annotations, want an empty map", got)
	}
}

// Without Routes, the exposure configures the kind of object that publishes a model.
func TestBuildHTTPRouteAndIngress(t *testing.T) {
	restricted := func(s *meshsettings.Settings) { s.NetworkPolicyRestricted = true }
	gateway, ingress := config.Exposure{Kind: config.ExposeGateway}, config.Exposure{Kind: config.ExposeIngress, IngressDomain: "example.org", IngressClass: "edge"}
	plain := capability.NewSet(capability.HTTPRoute)
	for name, c := range map[string]struct {
		exposure config.Exposure
		options  routeOptions
		kind     string
		port     int64
		problem  string // a part of the message
	}{
		"default":                            {config.Exposure{Kind: config.ExposeAuto}, newRouteOptions(plain, withRoute), "", 0, ""},
		"not requested":                      {ingress, newRouteOptions(plain, nil), "", 0, ""},
		"gateway":                            {gateway, newRouteOptions(plain, withRoute), "HTTPRoute", 8008, ""},
		"gateway, authentication":            {gateway, newRouteOptions(plain, withRouteAndAuth, authProxyAlways), "HTTPRoute", 8443, ""},
		"HTTPRoute API not served":           {gateway, newRouteOptions(capability.NewSet(), withRoute), "", 0, "there is no HTTPRoute, because the cluster does not serve the kind"},
		"ingress":                            {ingress, newRouteOptions(plain, withRoute), "Ingress", 8008, ""},
		"ingress, authentication":            {ingress, newRouteOptions(plain, withRouteAndAuth, authProxyAlways), "Ingress", 8443, ""},
		"ingress, TLS":                       {ingress, newRouteOptions(plain, withRoute, meshTLS("")), "Ingress", 8008, ""},
		"authentication without auth proxy":  {ingress, newRouteOptions(plain, withRouteAndAuth), "", 0, "there is no Ingress, because annotation enable-auth is set and authProxy.mode is auto"},
		"blocked by the NetworkPolicy":       {ingress, newRouteOptions(plain, withRoute, authProxyAlways), "", 0, "the NetworkPolicy closes REST"},
		"restricted NetworkPolicy":           {gateway, newRouteOptions(plain, withRoute, restricted), "", 0, "the NetworkPolicy closes REST"},
		"restricted, NetworkPolicy disabled": {gateway, newRouteOptions(plain, withRoute, restricted, func(s *meshsettings.Settings) { s.NetworkPolicyEnabled = false }), "HTTPRoute", 8008, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.exposure = exposure{c.exposure, resources.Gateway{Name: "public", Namespace: "gateways"}}
			desired, problem := buildRoute(newInferenceService("digits"), c.options)
			if (c.problem == "") != (problem == "") || !strings.Contains(problem, c.problem) {
				t.Errorf("problem %q, want %q", problem, c.problem)
			}
			out, err := apply.Render(desired, modelmesh.ComponentName, newInferenceService("digits"))
			if err != nil || len(out) > 1 || (len(out) == 0) != (c.kind == "") {
				t.Fatalf("%d objects, error %v", len(out), err)
			}
			if c.kind == "" {
				return
			}
			checkMetadata(t, out[0])
			rules, _, _ := unstructured.NestedSlice(out[0].Object, "spec", "rules")
			if diff := cmp.Diff(publishedRules(c.kind, c.port), rules); diff != "" || out[0].GetKind() != c.kind {
				t.Errorf("%s (-want +got):\n%s", out[0].GetKind(), diff)
			}
			tls := out[0].GetAnnotations()["nginx.ingress.kubernetes.io/backend-protocol"] == "HTTPS"
			if want := c.kind == "Ingress" && (c.port == 8443 || c.options.settings.TLS.Enabled()); tls != want {
				t.Errorf("backend protocol HTTPS: %t, want %t", tls, want)
			}
		})
	}
}

// publishedRules returns the expected rules of an Ingress or HTTPRoute.
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

// An Ingress is not built for a name that is too long for a DNS label, or contains a dot and could match the host of another namespace.
func TestBuildIngressRejectsInvalidHost(t *testing.T) {
	for _, name := range []string{strings.Repeat("a", 59), "digits.more"} {
		p := newRouteOptions(capability.NewSet(), withRoute)
		p.exposure.Exposure = config.Exposure{Kind: config.ExposeIngress, IngressDomain: "example.org"}
		if desired, problem := buildRoute(newInferenceService(name), p); len(desired) > 0 || !strings.Contains(problem, "is not a valid label of a host name") {
			t.Errorf("%s: %d objects, problem %q", name, len(desired), problem)
		}
	}
}
