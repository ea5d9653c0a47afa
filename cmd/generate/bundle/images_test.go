package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/odh-platform/odh-platform-operator/pkg/config"
)

func TestReadParameters(t *testing.T) {
	got, err := readParameters("# images\n\nA=x/y:1\n  B=x/z@sha256:0=1 \n")
	if err != nil || !slices.Equal(got, []parameter{{"A", "x/y:1"}, {"B", "x/z@sha256:0=1"}}) {
		t.Errorf("readParameters returned %v, error %v, want A and B", got, err)
	}
	for text, want := range map[string]string{"A": "not a line of the form", "=x": "not a line of the form", "A=": "not a line of the form", "A=1\nA=2": "A is set twice"} {
		if _, err := readParameters(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestSetImages(t *testing.T) {
	deployment := sourcesOf(t).deployment
	images, err := setImages(deployment, []parameter{{managerKey, "r/manager:2"}, {"RELATED_IMAGE_ODH_THING_IMAGE", "r/thing:3"}, {"CERT_GENERATOR_IMAGE", "r/cert:4"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.RelatedImage{{Name: "manager", Image: "r/manager:2"}, {Name: "odh-thing", Image: "r/thing:3"}, {Name: "cert-generator", Image: "r/cert:4"}}
	if difference := cmp.Diff(want, images); difference != "" {
		t.Error(difference)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	var names []string
	for _, e := range container.Env {
		names = append(names, e.Name+"="+e.Value)
	}
	if container.Image != "r/manager:2" || !slices.Equal(names, []string{
		"POD_NAMESPACE=", "ENABLE_THING=true", "RELATED_IMAGE_ODH_THING_IMAGE=r/thing:3", "CERT_GENERATOR_IMAGE=r/cert:4",
	}) {
		t.Errorf("got image %s and variables %q, want the parameters", container.Image, names)
	}
	if _, err := setImages(sourcesOf(t).deployment, []parameter{{"A", "r/a:1"}}); err == nil || !strings.Contains(err.Error(), managerKey+" is missing") {
		t.Errorf("got error %v without the image of the manager, want one that names it", err)
	}
	other := sourcesOf(t).deployment
	other.Spec.Template.Spec.Containers[0].Name = "other"
	if _, err := setImages(other, nil); err == nil || !strings.Contains(err.Error(), "no container named manager") {
		t.Errorf("got error %v without the container of the manager, want one that names it", err)
	}
}

func TestWithVersionTag(t *testing.T) {
	for given, want := range map[string]string{
		"r/m": "r/m:v1.2.3", "r:5000/m": "r:5000/m:v1.2.3", "r/m:latest": "r/m:latest", "r/m@sha256:00": "r/m@sha256:00", "m": "m:v1.2.3", "m:1": "m:1",
	} {
		before := []parameter{{"A_IMAGE", "r/a"}, {managerKey, given}}
		if got := withVersionTag(before, "1.2.3"); got[1].value != want || got[0].value != "r/a" || before[1].value != given {
			t.Errorf("%s: got %v, want %s", given, got, want)
		}
	}
}

func TestArePinned(t *testing.T) {
	digest := v1alpha1.RelatedImage{Image: "r/a@sha256:" + strings.Repeat("0", 64)}
	for _, c := range []struct {
		images []v1alpha1.RelatedImage
		want   bool
	}{
		{nil, true}, {[]v1alpha1.RelatedImage{digest}, true}, {[]v1alpha1.RelatedImage{digest, {Image: "r/b:1"}}, false},
	} {
		if got := arePinned(c.images); got != c.want {
			t.Errorf("%v: got %v, want %v", c.images, got, c.want)
		}
	}
}

// Each image variable of the manager has a parameter with its newest name, so the image is a related image.
func TestEveryImageHasAParameter(t *testing.T) {
	content, err := os.ReadFile("../../../config/manifests/params.env")
	if err != nil {
		t.Fatal(err)
	}
	parameters, err := readParameters(string(content))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{managerKey: true}
	for _, row := range config.SettingDocs(config.Program{}) {
		if !slices.ContainsFunc(row.Env, func(name string) bool { return strings.Contains(name, "IMAGE") }) {
			continue
		}
		newest := row.Env[0]
		known[newest] = true
		if !slices.ContainsFunc(parameters, func(p parameter) bool { return p.key == newest }) {
			t.Errorf("config/manifests/params.env has no %s (%s)", newest, row.Help)
		}
	}
	if len(known) < 12 {
		t.Errorf("got images %v, want at least 12", known)
	}
	for _, p := range parameters {
		if !known[p.key] {
			t.Errorf("the manager does not know %s", p.key)
		}
	}
}

// A Subscription enables components with environment variables, so no flag may override them.
func TestNoFlagOverridesSubscription(t *testing.T) {
	container := managerOf(t, shippedInput(t))
	for _, argument := range container.Args {
		if strings.HasPrefix(argument, "--enable-") || strings.HasPrefix(argument, "--components") {
			t.Errorf("%s overrides the variables of a Subscription", argument)
		}
	}
	seen := map[string]bool{}
	for _, e := range container.Env {
		if seen[e.Name] {
			t.Errorf("%s is set twice: a Subscription replaces one of them", e.Name)
		}
		seen[e.Name] = true
	}
}

// Webhooks and metrics use the certificate of OLM, and the manager issues none.
func TestBundleUsesCertificateOfOLM(t *testing.T) {
	container := managerOf(t, shippedInput(t))
	for _, argument := range []string{"--webhook-cert-mode=mounted", "--metrics-cert-path=/tmp/k8s-webhook-server/serving-certs"} {
		if !slices.Contains(container.Args, argument) {
			t.Errorf("%s is missing in %q", argument, container.Args)
		}
	}
}

// managerOf returns the container of the manager in the CSV.
func managerOf(t *testing.T, in input) corev1.Container {
	t.Helper()
	in.version = "1.2.3"
	out, err := build(in)
	if err != nil {
		t.Fatal(err)
	}
	csv := &v1alpha1.ClusterServiceVersion{}
	if err := decodeStrict(out.csv, csv); err != nil {
		t.Fatal(err)
	}
	return csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0]
}
