package bundle

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	shipped "github.com/odh-platform/odh-platform-operator/config"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

func annotations(t *testing.T) map[string]string {
	t.Helper()
	var file struct{ Annotations map[string]string }
	if err := yaml.UnmarshalStrict(read(t, root+"/bundle/metadata/annotations.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	return file.Annotations
}

// The bundle image has the labels of annotations.yaml, because some tools read the labels and others the file. It contains the folders of
// the bundle.
func TestImageLabelsMatchAnnotations(t *testing.T) {
	d := parse(t, "bundle.Dockerfile")
	if labels := d.labels(); !maps.Equal(labels, annotations(t)) || len(labels) < 8 {
		t.Errorf("got the labels %v, want the annotations %v", labels, annotations(t))
	}
	var copied []string
	for _, i := range d.stages[0].instructions {
		if i.name == "COPY" {
			copied = append(copied, strings.Join(i.arguments, " "))
		}
	}
	want := []string{"bundle/manifests /manifests/", "bundle/metadata /metadata/", "bundle/tests/scorecard /tests/scorecard/"}
	if d.stages[0].image != "scratch" || !slices.Equal(copied, want) {
		t.Errorf("got FROM %s with copies %q, want FROM scratch with %q", d.stages[0].image, copied, want)
	}
	for _, path := range want {
		from, _, _ := strings.Cut(path, " ")
		if !exists(from) {
			t.Errorf("bundle.Dockerfile copies %s, which does not exist", from)
		}
	}
}

func TestPackageAnnotations(t *testing.T) {
	a := annotations(t)
	for key, want := range map[string]string{
		"operators.operatorframework.io.bundle.package.v1": "odh-platform-operator", "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
		"operators.operatorframework.io.bundle.channels.v1": "candidate", "operators.operatorframework.io.bundle.channel.default.v1": "candidate",
	} {
		if a[key] != want {
			t.Errorf("%s: got %q, want %q", key, a[key], want)
		}
	}
	if exists("bundle/metadata/dependencies.yaml") {
		t.Error("the bundle has dependencies.yaml, but the operator requires no other operator")
	}
}

// OLM fails for manifests of kinds that it does not support or that the cluster does not serve. The test lists the kinds that OLM
// supports and every cluster serves.
func TestBundleHasPortableKinds(t *testing.T) {
	safe := []string{
		"/Secret", "/Service", "/ServiceAccount", "/ConfigMap", "operators.coreos.com/ClusterServiceVersion",
		"apiextensions.k8s.io/CustomResourceDefinition", "rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/RoleBinding",
		"rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRoleBinding", "policy/PodDisruptionBudget",
		"scheduling.k8s.io/PriorityClass", "networking.k8s.io/NetworkPolicy",
	}
	for file, object := range manifests(t) {
		if kind := object.GroupVersionKind(); !slices.Contains(safe, kind.Group+"/"+kind.Kind) {
			t.Errorf("%s is a %s, which some clusters do not serve: let the manager create it, see controllers/olm", file, kind.Kind)
		}
	}
	if exists("bundle/metadata/properties.yaml") {
		t.Error("the bundle has properties.yaml, but no release of OLM reads properties of optional manifests")
	}
}

// Each sample file with a single object of our kinds is an example in the CSV, or the manager adds it to the console. The manager adds no
// other sample files.
func TestEverySampleIsAnExample(t *testing.T) {
	managed, offered := map[string]bool{}, map[string]bool{}
	for _, e := range examples(t) {
		managed[e.GetAPIVersion()+e.GetKind()] = true
		offered[e.GetAPIVersion()+e.GetKind()+e.GetName()] = true
	}
	files, err := filepath.Glob(root + "/config/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		objects, err := framework.ReadObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		name := "samples/" + filepath.Base(file)
		_, err = shipped.Examples.Open(name)
		inConsole := err == nil
		single := len(objects) == 1 && managed[objects[0].GetAPIVersion()+objects[0].GetKind()]
		inCSV := single && offered[objects[0].GetAPIVersion()+objects[0].GetKind()+objects[0].GetName()]
		if inConsole && !single || single && !inConsole && !inCSV {
			t.Errorf("%s: in the console %v, in the CSV %v; add it to Examples in config/embed.go, and its name to the permissions in controllers/olm", name, inConsole, inCSV)
		}
		if inConsole {
			found++
		}
	}
	if found < 15 {
		t.Errorf("got %d examples for the console, want at least 15", found)
	}
}
