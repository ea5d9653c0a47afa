package bundle

import (
	"maps"
	"slices"
	"strings"
	"testing"

	consolev1 "github.com/openshift/api/console/v1"
	"sigs.k8s.io/yaml"
)

func annotations(t *testing.T) map[string]string {
	t.Helper()
	var file struct{ Annotations map[string]string }
	if err := yaml.UnmarshalStrict(read(t, root+"/bundle/metadata/annotations.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	return file.Annotations
}

// The labels of the image say what the annotations in it say: tools read the one or the other.
func TestLabelsAreTheAnnotations(t *testing.T) {
	d := parse(t, "bundle.Dockerfile")
	if labels := d.labels(); !maps.Equal(labels, annotations(t)) || len(labels) < 8 {
		t.Errorf("labels %v\nannotations %v", labels, annotations(t))
	}
	var copied []string
	for _, i := range d.stages[0].instructions {
		if i.name == "COPY" {
			copied = append(copied, strings.Join(i.arguments, " "))
		}
	}
	want := []string{"bundle/manifests /manifests/", "bundle/metadata /metadata/", "bundle/tests/scorecard /tests/scorecard/"}
	if d.stages[0].image != "scratch" || !slices.Equal(copied, want) {
		t.Errorf("from %s: %q", d.stages[0].image, copied)
	}
	for _, path := range want {
		from, _, _ := strings.Cut(path, " ")
		if !exists(from) {
			t.Errorf("%s is copied and not there", from)
		}
	}
}

func TestThePackage(t *testing.T) {
	a := annotations(t)
	for key, want := range map[string]string{
		"operators.operatorframework.io.bundle.package.v1": "odh-platform-operator", "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
		"operators.operatorframework.io.bundle.channels.v1": "candidate", "operators.operatorframework.io.bundle.channel.default.v1": "candidate",
	} {
		if a[key] != want {
			t.Errorf("%s: %q, want %q", key, a[key], want)
		}
	}
	if exists("bundle/metadata/dependencies.yaml") {
		t.Error("the operator depends on no other: it uses what the cluster serves")
	}
}

// What only some clusters serve is optional, and nothing else is: OLM leaves such manifests out where their kind is unknown, and
// would fail at a plain Kubernetes otherwise.
func TestOptionalManifests(t *testing.T) {
	var file struct {
		Properties []struct {
			Type  string
			Value struct {
				Manifests []struct{ Group, Kind, Name string }
			}
		}
	}
	if err := yaml.UnmarshalStrict(read(t, root+"/bundle/metadata/properties.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Properties) != 1 || file.Properties[0].Type != "olm.manifests.optional" {
		t.Fatalf("%+v", file)
	}
	optional := map[string]bool{}
	for _, m := range file.Properties[0].Value.Manifests {
		optional[m.Group+" "+m.Kind+" "+m.Name] = true
	}
	everywhere := []string{"", "apiextensions.k8s.io", "rbac.authorization.k8s.io", "networking.k8s.io", "policy", "operators.coreos.com"}
	found := 0
	for file, object := range manifests(t) {
		group := object.GroupVersionKind().Group
		known := slices.Contains(everywhere, group)
		if optional[group+" "+object.GetKind()+" "+object.GetName()] == known {
			t.Errorf("%s: optional %v", file, !known)
		}
		if !known {
			found++
		}
	}
	if found != len(optional) {
		t.Errorf("%d manifests are optional, %d should be", found, len(optional))
	}
}

// The samples of the console are such that the console shows them, and each fits the kind that it is offered for.
func TestConsoleSamples(t *testing.T) {
	titles, count := map[string]string{}, 0
	for file, object := range manifests(t) {
		if object.GetKind() != "ConsoleYAMLSample" {
			continue
		}
		count++
		s := &consolev1.ConsoleYAMLSample{}
		if err := yaml.UnmarshalStrict(read(t, root+"/bundle/manifests/"+file), s); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var shown struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(s.Spec.YAML), &shown); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if shown.APIVersion != s.Spec.TargetResource.APIVersion || shown.Kind != s.Spec.TargetResource.Kind {
			t.Errorf("%s: %v for %v", file, shown, s.Spec.TargetResource)
		}
		if other := titles[string(s.Spec.Title)]; other != "" || len(s.Spec.Title) < 5 || len(s.Spec.Description) < 5 {
			t.Errorf("%s: title %q, as %q; description %q", file, s.Spec.Title, other, s.Spec.Description)
		}
		titles[string(s.Spec.Title)] = file
	}
	if count < 15 {
		t.Errorf("%d samples", count)
	}
}
