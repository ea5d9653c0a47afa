package overlays

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
)

// runtimes returns the runtimes in a directory by name.
func runtimes(t *testing.T, folder string) map[string]*v1alpha1.ClusterServingRuntime {
	t.Helper()
	objects, err := operator.Kustomize(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*v1alpha1.ClusterServingRuntime{}
	for _, object := range objects {
		r := &v1alpha1.ClusterServingRuntime{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, r); err != nil {
			t.Fatal(err)
		}
		all[r.Name] = r
	}
	return all
}

// The current runtimes do not replace the older ones, and serve only models that name them, so existing models keep their runtime.
func TestCurrentRuntimesGetNoModelsByFormat(t *testing.T) {
	previous, current := runtimes(t, "config/runtimes"), runtimes(t, "config/current-runtimes")
	images := map[string]bool{}
	for _, r := range previous {
		images[r.Spec.Containers[0].Image] = true
	}
	if len(current) != 3 {
		t.Errorf("got %d current runtimes, want 3", len(current))
	}
	for name, r := range current {
		if previous[name] != nil || images[r.Spec.Containers[0].Image] || r.Labels["name"] != "modelmesh-serving-"+name+"-SR" {
			t.Errorf("%s replaces a runtime of config/runtimes: image %s, labels %v", name, r.Spec.Containers[0].Image, r.Labels)
		}
		labels := modelmesh.Labels(name, &r.Spec, true)
		for _, label := range labels {
			if strings.HasPrefix(label, "mt:") {
				t.Errorf("%s serves models by their format: %v", name, labels)
			}
		}
		if !modelmesh.HasLabels(labels, "rt:"+name) || len(r.Spec.SupportedModelFormats) == 0 {
			t.Errorf("%s does not serve models that name it: %v", name, labels)
		}
	}
}
