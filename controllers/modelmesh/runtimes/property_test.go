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

// randomNamespace applies random changes to a namespace and computes the expected objects. Runtimes have the name of their format.
type randomNamespace struct {
	*testEnv
	rapid                                   *rapid.T
	servingRuntimes, clusterServingRuntimes map[string]*v1alpha1.ServingRuntimeSpec // by name
	hasPredictor                            map[string]bool                         // by format
	enabled                                 bool
	serviceName                             string
}

// formats are the names of runtimes and the formats that they support.
var formats = []string{"onnx", "sklearn", "xgboost"}

// setExists creates or deletes an object.
func (n *randomNamespace) setExists(o client.Object, exists bool) {
	if exists {
		n.must(client.IgnoreAlreadyExists(n.api.Create(n.Context(), o)))
		return
	}
	n.must(client.IgnoreNotFound(n.api.Delete(n.Context(), o)))
}

// changeServingRuntime creates or deletes a ServingRuntime.
func (n *randomNamespace) changeServingRuntime() string {
	name := rapid.SampledFrom(formats).Draw(n.rapid, "runtime")
	r := newServingRuntime(name, name)
	if _, found := n.servingRuntimes[name]; found {
		delete(n.servingRuntimes, name)
		n.setExists(r, false)
		return "deleted ServingRuntime " + name
	}
	switch rapid.SampledFrom([]string{"plain", "autoscaled", "disabled", "single-model", "invalid"}).Draw(n.rapid, "kind") {
	case "autoscaled":
		r.Annotations = map[string]string{"serving.kserve.io/autoscalerClass": "hpa"}
	case "disabled":
		r.Spec.Disabled = new(true)
	case "single-model":
		r.Spec.MultiModel = nil
	case "invalid":
		r.Spec.Containers[0].Name = "puller"
	}
	n.servingRuntimes[name] = &r.Spec
	n.setExists(r, true)
	return "created ServingRuntime " + name
}

// changeClusterServingRuntime creates or deletes a ClusterServingRuntime.
func (n *randomNamespace) changeClusterServingRuntime() string {
	name := rapid.SampledFrom(formats).Draw(n.rapid, "cluster runtime")
	r := newClusterServingRuntime(name, name)
	_, found := n.clusterServingRuntimes[name]
	n.setExists(r, !found)
	if found {
		delete(n.clusterServingRuntimes, name)
		return "deleted ClusterServingRuntime " + name
	}
	n.clusterServingRuntimes[name] = &r.Spec
	return "created ClusterServingRuntime " + name
}

func (n *randomNamespace) changePredictor() string {
	format := rapid.SampledFrom(formats).Draw(n.rapid, "format")
	n.hasPredictor[format] = !n.hasPredictor[format]
	n.setExists(newPredictor("of-"+format, format), n.hasPredictor[format])
	return fmt.Sprintf("Predictor of %s: %t", format, n.hasPredictor[format])
}

func (n *randomNamespace) changeLabel() string {
	n.enabled = !n.enabled
	namespace := &corev1.Namespace{}
	n.get(namespace, "", "ns")
	namespace.Labels[modelmesh.LabelEnabled] = fmt.Sprint(n.enabled)
	n.must(n.api.Update(n.Context(), namespace))
	return fmt.Sprintf("enabled: %t", n.enabled)
}

func (n *randomNamespace) changeSettings() string {
	n.serviceName = rapid.SampledFrom([]string{"modelmesh-serving", "other"}).Draw(n.rapid, "service")
	n.settings.ServiceName = n.serviceName
	n.settings.PodsPerRuntime = rapid.Int32Range(1, 3).Draw(n.rapid, "pods")
	return fmt.Sprintf("settings: %s, %d pods", n.serviceName, n.settings.PodsPerRuntime)
}

// failWrites fails all writes of a kind during one reconcile.
func (n *randomNamespace) failWrites() string {
	kind := rapid.SampledFrom([]string{"Deployment", "Service", "Secret", "ConfigMap"}).Draw(n.rapid, "failing kind")
	n.failRequest = func(verb, k, _ string) error {
		if verb != "get" && k == kind {
			return errors.New("write failed")
		}
		return nil
	}
	_, _ = n.Reconcile(n.Context(), modelmesh.RequestFor("ns"))
	n.failRequest = nil
	return "writes of " + kind + " failed"
}

// step applies a random change and describes it.
func (n *randomNamespace) step() string {
	return rapid.SampledFrom([]func() string{
		n.changeServingRuntime, n.changeServingRuntime, n.changeClusterServingRuntime, n.changePredictor, n.changeLabel, n.changeSettings, n.failWrites,
		func() string { n.restart(); return "operator restart" },
		func() string { n.clock.Step(2 * time.Minute); return "two minutes" },
	}).Draw(n.rapid, "step")()
}

// specOf returns the spec of a runtime: a ServingRuntime takes precedence over a ClusterServingRuntime.
func (n *randomNamespace) specOf(name string) *v1alpha1.ServingRuntimeSpec {
	if spec, found := n.servingRuntimes[name]; found {
		return spec
	}
	return n.clusterServingRuntimes[name]
}

// check compares the managed objects with the expected ones, except autoscalers and the Deployments of invalid runtimes.
func (n *randomNamespace) check() {
	want := map[string]bool{}
	hasRuntimes := false
	for _, name := range formats {
		spec := n.specOf(name)
		hasRuntimes = hasRuntimes || spec != nil
		if spec == nil || !n.enabled || !pkgmodelmesh.IsEnabled(spec) {
			continue
		}
		if spec.Containers[0].Name == "puller" {
			continue // an invalid runtime has no Deployment, or keeps that of a valid spec
		}
		want["Deployment "+n.serviceName+"-"+name] = true
	}
	if n.enabled {
		want["Service "+n.serviceName] = true
	}
	if n.enabled && hasRuntimes {
		want["ConfigMap tc-config"], want["Secret model-serving-etcd"] = true, true
	}
	got := n.managedObjects()
	for _, name := range formats { // autoscalers depend on grace periods, and invalid runtimes may have a Deployment
		delete(got, "HorizontalPodAutoscaler "+n.serviceName+"-"+name)
		if spec := n.specOf(name); spec != nil && spec.Containers[0].Name == "puller" && n.enabled {
			delete(got, "Deployment "+n.serviceName+"-"+name)
		}
	}
	if !maps.Equal(got, want) {
		n.rapid.Fatalf("objects\n%s\nwant\n%s", sortedLines(got), sortedLines(want))
	}
	foreign := &corev1.Service{}
	if !n.get(foreign, "ns", "foreign") || isManaged(foreign) {
		n.rapid.Fatalf("the foreign Service was deleted or adopted")
	}
}

// managedObjects returns the managed Deployments, autoscalers, Services, ConfigMaps and Secrets in ns as kind and name.
func (n *randomNamespace) managedObjects() map[string]bool {
	objects := map[string]bool{}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &autoscalingv2.HorizontalPodAutoscalerList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{},
	} {
		n.must(n.api.List(n.Context(), list, client.InNamespace("ns"), managedLabels()))
		switch l := list.(type) {
		case *appsv1.DeploymentList:
			for i := range l.Items {
				objects["Deployment "+l.Items[i].Name] = true
			}
		case *autoscalingv2.HorizontalPodAutoscalerList:
			for i := range l.Items {
				objects["HorizontalPodAutoscaler "+l.Items[i].Name] = true
			}
		case *corev1.ServiceList:
			for i := range l.Items {
				objects["Service "+l.Items[i].Name] = true
			}
		case *corev1.ConfigMapList:
			for i := range l.Items {
				objects["ConfigMap "+l.Items[i].Name] = true
			}
		case *corev1.SecretList:
			for i := range l.Items {
				objects["Secret "+l.Items[i].Name] = true
			}
		}
	}
	return objects
}

func sortedLines(m map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(m)), "\n") }

// [M11] [M16] [M20] After any sequence of changes the expected objects exist, the foreign Service is neither deleted nor adopted, and a
// further reconcile sends no request.
func TestRandomChangesConverge(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := &randomNamespace{
			testEnv: newTestEnv(t, &corev1.Service{ObjectMeta: legacyMeta("ns", "foreign", "", resources.LabelService, "foreign")}), rapid: r,
			servingRuntimes: map[string]*v1alpha1.ServingRuntimeSpec{}, clusterServingRuntimes: map[string]*v1alpha1.ServingRuntimeSpec{},
			hasPredictor: map[string]bool{}, enabled: true, serviceName: "modelmesh-serving",
		}
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			description := n.step()
			for range 5 {
				if _, err := n.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err != nil {
					r.Fatalf("reconcile after %s: %v", description, err)
				}
				if len(n.takeWrites()) == 0 {
					break
				}
			}
			r.Log(description)
			n.check()
			n.reads = nil
			if _, err := n.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err != nil || len(n.writes)+len(n.reads) > 0 {
				r.Fatalf("steady state after %s: writes %q, reads %q, error %v", description, n.writes, n.reads, err)
			}
		}
	})
}
