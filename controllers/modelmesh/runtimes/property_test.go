package runtimes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	pkgmodelmesh "github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// namespaceModel applies random changes to a namespace and computes the expected objects.
type namespaceModel struct {
	*testEnv
	rapid *rapid.T
	// local are ServingRuntimes and shared ClusterServingRuntimes by name; models count Predictors by format.
	local, shared map[string]*v1alpha1.ServingRuntimeSpec
	scaled        map[string]bool
	models        map[string]bool
	on            bool
	service       string
}

// formats are the names of runtimes and the formats that they support.
var formats = []string{"onnx", "sklearn", "xgboost"}

func (j *namespaceModel) write(o client.Object, found bool) {
	if found {
		j.must(client.IgnoreAlreadyExists(j.api.Create(j.Context(), o)))
		return
	}
	j.must(client.IgnoreNotFound(j.api.Delete(j.Context(), o)))
}

// localStep creates, updates or deletes a ServingRuntime.
func (j *namespaceModel) localStep() string {
	name := rapid.SampledFrom(formats).Draw(j.rapid, "runtime")
	r := localRuntime(name, name)
	if _, found := j.local[name]; found {
		delete(j.local, name)
		delete(j.scaled, name)
		j.write(r, false)
		return "removed runtime " + name
	}
	switch rapid.SampledFrom([]string{"plain", "scaled", "disabled", "single", "invalid"}).Draw(j.rapid, "kind") {
	case "scaled":
		r.Annotations = map[string]string{"serving.kserve.io/autoscalerClass": "hpa"}
		j.scaled[name] = true
	case "disabled":
		r.Spec.Disabled = new(true)
	case "single":
		r.Spec.MultiModel = nil
	case "invalid":
		r.Spec.Containers[0].Name = "puller"
	}
	j.local[name] = &r.Spec
	j.write(r, true)
	return "added runtime " + name
}

// sharedStep creates or deletes a ClusterServingRuntime.
func (j *namespaceModel) sharedStep() string {
	name := rapid.SampledFrom(formats).Draw(j.rapid, "cluster runtime")
	r := clusterRuntime(name, name)
	_, found := j.shared[name]
	j.write(r, !found)
	if found {
		delete(j.shared, name)
		return "removed the cluster's runtime " + name
	}
	j.shared[name] = &r.Spec
	return "added the cluster's runtime " + name
}

func (j *namespaceModel) modelStep() string {
	format := rapid.SampledFrom(formats).Draw(j.rapid, "format")
	j.models[format] = !j.models[format]
	j.write(predictorOf("of-"+format, format), j.models[format])
	return fmt.Sprintf("model of %s: %v", format, j.models[format])
}

func (j *namespaceModel) labelStep() string {
	j.on = !j.on
	n := &corev1.Namespace{}
	j.get(n, "", "ns")
	n.Labels[modelmesh.LabelEnabled] = fmt.Sprint(j.on)
	j.must(j.api.Update(j.Context(), n))
	return fmt.Sprintf("served: %v", j.on)
}

func (j *namespaceModel) settingsStep() string {
	j.service = rapid.SampledFrom([]string{"modelmesh-serving", "other"}).Draw(j.rapid, "service")
	j.settings.ServiceName = j.service
	j.settings.PodsPerRuntime = rapid.Int32Range(1, 3).Draw(j.rapid, "pods")
	return fmt.Sprintf("settings: %s, %d pods", j.service, j.settings.PodsPerRuntime)
}

// failStep rejects writes of a kind during one reconcile.
func (j *namespaceModel) failStep() string {
	kind := rapid.SampledFrom([]string{"Deployment", "Service", "Secret", "ConfigMap"}).Draw(j.rapid, "kind that fails")
	j.fail = func(verb, k, _ string) error {
		if verb != "get" && k == kind {
			return errors.New("not now")
		}
		return nil
	}
	_, _ = j.Reconcile(j.Context(), modelmesh.RequestFor("ns"))
	j.fail = nil
	return "writes of " + kind + " failed"
}

// step applies a random change and describes it.
func (j *namespaceModel) step() string {
	return rapid.SampledFrom([]func() string{
		j.localStep, j.localStep, j.sharedStep, j.modelStep, j.labelStep, j.settingsStep, j.failStep,
		func() string { j.restart(); return "restart" },
		func() string { j.clock.Step(2 * time.Minute); return "time" },
	}).Draw(j.rapid, "step")()
}

// effective returns the spec of a runtime: a ServingRuntime takes precedence over a ClusterServingRuntime.
func (j *namespaceModel) effective(name string) *v1alpha1.ServingRuntimeSpec {
	if spec, found := j.local[name]; found {
		return spec
	}
	return j.shared[name]
}

// check compares the managed objects with the expected ones.
func (j *namespaceModel) check() {
	want := map[string]bool{}
	known := false
	for _, name := range formats {
		spec := j.effective(name)
		known = known || spec != nil
		if spec == nil || !j.on || !pkgmodelmesh.IsEnabled(spec) {
			continue
		}
		if spec.Containers[0].Name == "puller" {
			continue // it was invalid when it came, or stays as it was
		}
		want["Deployment "+j.service+"-"+name] = true
		if j.scaled[name] && j.models[name] {
			want["HorizontalPodAutoscaler "+j.service+"-"+name] = true
		}
	}
	if j.on {
		want["Service "+j.service] = true
	}
	if j.on && known {
		want["ConfigMap tc-config"], want["Secret model-serving-etcd"] = true, true
	}
	got := j.managedObjects()
	for _, name := range formats { // grace periods, and invalid runtimes, which keep their Deployment
		delete(got, "HorizontalPodAutoscaler "+j.service+"-"+name)
		delete(want, "HorizontalPodAutoscaler "+j.service+"-"+name)
		if spec := j.effective(name); spec != nil && spec.Containers[0].Name == "puller" && j.on {
			delete(got, "Deployment "+j.service+"-"+name)
		}
	}
	if !maps.Equal(got, want) {
		j.rapid.Fatalf("there is\n%s\nand there should be\n%s", sortedLines(got), sortedLines(want))
	}
	foreign := &corev1.Service{}
	if !j.get(foreign, "ns", "theirs") || isManaged(foreign) {
		j.rapid.Fatalf("a foreign Service is gone or taken over")
	}
}

// managedObjects returns the managed objects in ns as kind and name.
func (j *namespaceModel) managedObjects() map[string]bool {
	out := map[string]bool{}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &autoscalingv2.HorizontalPodAutoscalerList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{},
	} {
		j.must(j.api.List(j.Context(), list, client.InNamespace("ns"), managedLabels()))
		switch l := list.(type) {
		case *appsv1.DeploymentList:
			for i := range l.Items {
				out["Deployment "+l.Items[i].Name] = true
			}
		case *autoscalingv2.HorizontalPodAutoscalerList:
			for i := range l.Items {
				out["HorizontalPodAutoscaler "+l.Items[i].Name] = true
			}
		case *corev1.ServiceList:
			for i := range l.Items {
				out["Service "+l.Items[i].Name] = true
			}
		case *corev1.ConfigMapList:
			for i := range l.Items {
				out["ConfigMap "+l.Items[i].Name] = true
			}
		case *corev1.SecretList:
			for i := range l.Items {
				out["Secret "+l.Items[i].Name] = true
			}
		}
	}
	return out
}

func sortedLines(m map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(m)), "\n") }

// [M11] [M16] [M20] After any sequence of changes the expected objects exist, foreign objects are unchanged, and a further reconcile
// writes nothing.
func TestRandomNamespaceChangesConverge(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		j := &namespaceModel{
			testEnv: newTestEnv(t, &corev1.Service{ObjectMeta: legacyMeta("ns", "theirs", "", resources.LabelService, "theirs")}), rapid: r,
			local: map[string]*v1alpha1.ServingRuntimeSpec{}, shared: map[string]*v1alpha1.ServingRuntimeSpec{},
			scaled: map[string]bool{}, models: map[string]bool{}, on: true, service: "modelmesh-serving",
		}
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			description := j.step()
			for range 5 {
				if _, err := j.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err != nil {
					r.Fatalf("reconciling after %s failed: %v", description, err)
				}
				if len(j.takeWrites()) == 0 {
					break
				}
			}
			r.Log(description)
			j.check()
			j.reads = nil
			if _, err := j.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err != nil || len(j.takeWrites())+len(j.reads) > 0 {
				r.Fatalf("after %s: in the steady state the reconciler wrote %q and read %q: %v", description, j.takeWrites(), j.reads, err)
			}
		}
	})
}
