// Package bundle checks the OLM bundle against the requirements of OLM, its validators and its scorecard.
package bundle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	root = "../.."
	// minKubernetes is the oldest version of Kubernetes that the CSV allows.
	minKubernetes = "1.30"
)

// csv returns the ClusterServiceVersion of the bundle. It fails the test for unknown fields, which OLM would drop.
func csv(t *testing.T) *v1alpha1.ClusterServiceVersion {
	t.Helper()
	paths, err := filepath.Glob(root + "/bundle/manifests/*.clusterserviceversion.yaml")
	if err != nil || len(paths) != 1 {
		t.Fatalf("unexpected paths %v, error %v", paths, err)
	}
	out := &v1alpha1.ClusterServiceVersion{}
	if err := yaml.UnmarshalStrict(read(t, paths[0]), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Clients read the image of upload Jobs from a ConfigMap, which has the value of the overlay.
func TestConfigMapHasImageOfUploadJobs(t *testing.T) {
	for _, object := range manifests(t) {
		if object.GetKind() == "ConfigMap" && object.GetName() == "model-registry-operator-parameters" {
			image, _, _ := unstructured.NestedString(object.Object, "data", "IMAGES_JOBS_ASYNC_UPLOAD")
			if !strings.Contains(string(read(t, root+"/config/overlays/odh/params.env")), "\nIMAGES_JOBS_ASYNC_UPLOAD="+image+"\n") {
				t.Errorf("got image %s, want the image of the overlay", image)
			}
			return
		}
	}
	t.Error("the bundle has no ConfigMap model-registry-operator-parameters")
}

// manifests returns the objects of the bundle, by file name.
func manifests(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(root + "/bundle/manifests/*.yaml")
	if err != nil || len(paths) < 20 {
		t.Fatalf("unexpected paths %v, error %v", paths, err)
	}
	out := map[string]*unstructured.Unstructured{}
	for _, path := range paths {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(read(t, path), &object.Object); err != nil {
			t.Fatalf("%s: unexpected error: %v", path, err)
		}
		out[filepath.Base(path)] = object
	}
	return out
}

// crds returns the CRDs in the bundle, by name.
func crds(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for file, object := range manifests(t) {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(read(t, root+"/bundle/manifests/"+file), crd); err != nil {
			t.Fatalf("%s: unexpected error: %v", file, err)
		}
		out[crd.Name] = crd
	}
	return out
}

// examples returns the objects in the annotation alm-examples.
func examples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	var objects []map[string]any
	if err := json.Unmarshal([]byte(csv(t).Annotations["alm-examples"]), &objects); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		out = append(out, &unstructured.Unstructured{Object: o})
	}
	return out
}

// schema returns the schema of an object, and the description of its kind in the CSV.
func schema(t *testing.T, object *unstructured.Unstructured) (*apiextensionsv1.JSONSchemaProps, v1alpha1.CRDDescription) {
	t.Helper()
	kind := object.GroupVersionKind()
	for _, crd := range crds(t) {
		at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == kind.Version })
		if crd.Spec.Group != kind.Group || crd.Spec.Names.Kind != kind.Kind || at < 0 {
			continue
		}
		for _, d := range csv(t).Spec.CustomResourceDefinitions.Owned {
			if d.Name == crd.Name && d.Version == kind.Version {
				return crd.Spec.Versions[at].Schema.OpenAPIV3Schema, d
			}
		}
	}
	t.Fatalf("the CSV owns no %s", kind)
	return nil, v1alpha1.CRDDescription{}
}

// Every CRD of the operator is in the bundle, with a display name, a description, resources and an example.
func TestCSVOwnsEveryCRD(t *testing.T) {
	sources, err := filepath.Glob(root + "/config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	owned, shown := csv(t).Spec.CustomResourceDefinitions.Owned, map[string]bool{}
	if len(owned) != len(sources) || len(crds(t)) != len(sources) {
		t.Errorf("got %d CRDs in the bundle and %d that the CSV owns, want %d", len(crds(t)), len(owned), len(sources))
	}
	for _, e := range examples(t) {
		_, d := schema(t, e)
		shown[d.Name] = true
	}
	for _, d := range owned {
		crd := crds(t)[d.Name]
		if crd == nil || crd.Spec.Names.Kind != d.Kind {
			t.Errorf("the CSV owns %s of kind %s, which is not in the bundle", d.Name, d.Kind)
		}
		if d.DisplayName == "" || len(d.Description) < 30 || len(d.Resources) == 0 || !shown[d.Name] {
			t.Errorf("%s lacks a display name, a description, resources or an example", d.Name)
		}
	}
}

// Every top-level field of spec and status has a display name and a description, including fields that the example lacks.
func TestCSVDescribesEveryField(t *testing.T) {
	for _, e := range examples(t) {
		s, d := schema(t, e)
		spec, status := map[string]string{}, map[string]string{}
		for _, f := range d.SpecDescriptors {
			if f.DisplayName != "" {
				spec[f.Path] = f.Description
			}
		}
		for _, f := range d.StatusDescriptors {
			if f.DisplayName != "" {
				status[f.Path] = f.Description
			}
		}
		for name := range s.Properties["spec"].Properties {
			if len(spec[name]) < 10 {
				t.Errorf("%s: spec.%s has no display name, or too short a description: %q", d.Kind, name, spec[name])
			}
		}
		for name := range s.Properties["status"].Properties {
			if len(status[name]) < 10 {
				t.Errorf("%s: status.%s has no display name, or too short a description: %q", d.Kind, name, status[name])
			}
		}
	}
}

// The images of the manager and of its operands are related images of the CSV, which mirroring tools copy.
func TestRelatedImagesAreComplete(t *testing.T) {
	c := csv(t)
	related := map[string]bool{}
	for _, i := range c.Spec.RelatedImages {
		related[i.Image] = true
	}
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range d.Spec.Template.Spec.Containers {
			if !related[container.Image] {
				t.Errorf("relatedImages lacks %s, the image of container %s", container.Image, container.Name)
			}
			for _, e := range container.Env {
				if looksLikeImage(e.Value) && !related[e.Value] {
					t.Errorf("relatedImages lacks %s, the image in variable %s", e.Value, e.Name)
				}
			}
		}
	}
	if c.Annotations["containerImage"] != c.Spec.RelatedImages[0].Image || c.Spec.RelatedImages[0].Name != "manager" {
		t.Errorf("got containerImage %s and first related image %v, want both to be that of the manager", c.Annotations["containerImage"], c.Spec.RelatedImages[0])
	}
}

func looksLikeImage(value string) bool {
	return strings.Contains(value, "/") && (strings.Contains(value, "@sha256:") || strings.LastIndex(value, ":") > strings.LastIndex(value, "/")) &&
		!strings.Contains(value, "://")
}

// The CSV has the correct name, versions, install modes, features and platforms.
func TestCSVMetadata(t *testing.T) {
	c := csv(t)
	if c.Name != "odh-platform-operator.v"+c.Spec.Version.String() || c.Spec.MinKubeVersion != minKubernetes+".0" {
		t.Errorf("unexpected name %s, version %s or minKubeVersion %s", c.Name, c.Spec.Version, c.Spec.MinKubeVersion)
	}
	for _, mode := range c.Spec.InstallModes {
		if mode.Supported != (mode.Type == v1alpha1.InstallModeTypeAllNamespaces) {
			t.Errorf("%s: unexpected mode.Supported: %v", mode.Type, mode.Supported)
		}
	}
	pinned := !slices.ContainsFunc(c.Spec.RelatedImages, func(i v1alpha1.RelatedImage) bool { return !strings.Contains(i.Image, "@sha256:") })
	want := map[string]string{"disconnected": "false", "fips-compliant": "false", "proxy-aware": "false", "tls-profiles": "false", "token-auth-aws": "false",
		"token-auth-azure": "false", "token-auth-gcp": "false", "cnf": "false", "cni": "false", "csi": "false"}
	if pinned {
		want["disconnected"] = "true"
	}
	for name, value := range want {
		if got := c.Annotations["features.operators.openshift.io/"+name]; got != value {
			t.Errorf("feature %s: %q, want %q", name, got, value)
		}
	}
	if got := c.Annotations["operatorframework.io/suggested-namespace"]; got != "opendatahub" {
		t.Errorf("suggested namespace %q, want %q", got, "opendatahub")
	}
	for _, platform := range []string{"os.linux", "arch.amd64", "arch.arm64", "arch.ppc64le", "arch.s390x"} {
		if c.Labels["operatorframework.io/"+platform] != "supported" {
			t.Errorf("the value of label operatorframework.io/%s is not \"supported\"", platform)
		}
	}
}

// As in the overlays for OpenShift, two replicas serve webhooks, and one pod at a time may be evicted.
func TestManagerHasTwoReplicas(t *testing.T) {
	deployment := csv(t).Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
	if *deployment.Replicas != 2 {
		t.Errorf("got %d replicas, want 2", *deployment.Replicas)
	}
	var keys []string
	for _, spread := range deployment.Template.Spec.TopologySpreadConstraints {
		keys = append(keys, spread.TopologyKey+" "+string(spread.WhenUnsatisfiable))
	}
	if !slices.Equal(keys, []string{"kubernetes.io/hostname ScheduleAnyway", "topology.kubernetes.io/zone ScheduleAnyway"}) {
		t.Errorf("got topology spread constraints %v, want %v", keys, []string{"kubernetes.io/hostname ScheduleAnyway", "topology.kubernetes.io/zone ScheduleAnyway"})
	}
	if args := deployment.Template.Spec.Containers[0].Args; !slices.Contains(args, "--leader-elect-lease-duration=137s") {
		t.Errorf("got arguments %v, want the lease duration of OpenShift", args)
	}
	budget := manifests(t)["odh-platform-operator-controller-manager_policy_v1_poddisruptionbudget.yaml"]
	if most, _, _ := unstructured.NestedFieldNoCopy(budget.Object, "spec", "maxUnavailable"); most != 1.0 { // numbers are decoded as float64
		t.Errorf("got PodDisruptionBudget %v, want maxUnavailable 1", budget.Object["spec"])
	}
}
