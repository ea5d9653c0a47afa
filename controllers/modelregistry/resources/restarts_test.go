package resources

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/test/apifields"
	"github.com/odh-platform/odh-platform-operator/test/registrytest"
)

var limits = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("7Gi")}}

// serverChanges maps fields of server and proxy, by the file that declares them and their name, to functions that change them.
var serverChanges = map[string]func(*v1beta1.ModelRegistrySpec){
	"modelregistry port":         func(s *v1beta1.ModelRegistrySpec) { s.Rest.Port = new(int32(8081)) },
	"modelregistry serviceRoute": func(s *v1beta1.ModelRegistrySpec) { s.Rest.ServiceRoute = v1beta1.RouteEnabled },
	"modelregistry resources":    func(s *v1beta1.ModelRegistrySpec) { s.Rest.Resources = limits },
	"modelregistry image":        func(s *v1beta1.ModelRegistrySpec) { s.Rest.Image = "example.com/other:1" },
	"proxy port":                 func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Port = new(int32(9443)) },
	"proxy serviceRoute":         func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.ServiceRoute = v1beta1.RouteDisabled },
	"proxy domain":               func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Domain = "other.example.com" },
	"proxy routePort":            func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.RoutePort = new(int32(444)) },
	"proxy image":                func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Image = "example.com/other:1" },
	"proxy resources":            func(s *v1beta1.ModelRegistrySpec) { s.KubeRBACProxy.Resources = limits },
}

// The description of a field states whether a change restarts the server pods, and the pod template agrees, on each platform.
func TestDescriptionsOfRestarts(t *testing.T) {
	var described []string
	for _, file := range []string{"modelregistry", "proxy"} {
		for _, field := range apifields.Read(t, "../../../apis/modelregistry/v1beta1/"+file+"_types.go", "") {
			name := file + " " + field.Name
			restarts := strings.Contains(field.Comment, "A change restarts the server pods.")
			if !restarts && !strings.Contains(field.Comment, "A change does not restart pods.") {
				continue
			}
			described = append(described, name)
			change := serverChanges[name]
			if change == nil {
				t.Errorf("serverChanges lacks %s", name)
				continue
			}
			for platform, in := range map[string]Inputs{"plain": plain, "openshift": openshift, "gateway": gateway} {
				template := func(m *v1beta1.ModelRegistry) corev1.PodTemplateSpec {
					return decodeObject[appsv1.Deployment](t, buildObjects(t, m, in), "Deployment", "team-a").Spec.Template
				}
				before := template(registrytest.Registry(registrytest.AddProxy))
				if changed := !reflect.DeepEqual(before, template(registrytest.Registry(registrytest.AddProxy, change))); changed != restarts {
					t.Errorf("%s: %s changes the pod template: %v; its description: %v", platform, name, changed, restarts)
				}
			}
		}
	}
	for name := range serverChanges {
		if !slices.Contains(described, name) {
			t.Errorf("the description of %s does not state whether a change restarts pods", name)
		}
	}
}
