package bundle

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// scorecard maps the tests of the scorecard, which needs a cluster for its pods, to functions with the same checks.
var scorecard = map[string]func(*testing.T){
	"basic-check-spec":         specBlocks,
	"olm-bundle-validation":    validBundle,
	"olm-crds-have-validation": validatedFields,
	"olm-crds-have-resources":  resources,
	"olm-spec-descriptors":     specDescriptors,
	"olm-status-descriptors":   statusDescriptors,
}

// The scorecard of the bundle runs these tests, and they pass.
func TestScorecard(t *testing.T) {
	var config struct {
		Kind   string
		Stages []struct {
			Tests []struct {
				Image      string
				Entrypoint []string
				Labels     map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, root+"/bundle/tests/scorecard/config.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	if config.Kind != "Configuration" || len(config.Stages) != 1 || len(config.Stages[0].Tests) != len(scorecard) {
		t.Fatalf("unexpected config: %+v", config)
	}
	for _, test := range config.Stages[0].Tests {
		if len(test.Entrypoint) != 2 || test.Labels["test"] != test.Entrypoint[1]+"-test" || test.Image == "" {
			t.Errorf("got %+v, want an image and an entrypoint that match its label", test)
			continue
		}
		check := scorecard[test.Entrypoint[1]]
		if check == nil {
			t.Errorf("the test %s is unknown", test.Entrypoint[1])
			continue
		}
		t.Run(test.Entrypoint[1], check)
	}
}

// specBlocks checks that every example has a spec.
func specBlocks(t *testing.T) {
	for _, e := range examples(t) {
		if spec, _ := e.Object["spec"].(map[string]any); len(spec) == 0 {
			t.Errorf("%s %s has no spec", e.GetKind(), e.GetName())
		}
	}
}

// validBundle checks the format of the bundle; for the validators see TestValidatorsPass.
func validBundle(t *testing.T) {
	found := 0
	for file, object := range manifests(t) {
		if object.GetKind() == "ClusterServiceVersion" {
			found++
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			t.Errorf("%s: incomplete object %s %s %q", file, object.GetAPIVersion(), object.GetKind(), object.GetName())
		}
		if object.GetKind() != "ClusterServiceVersion" && object.GetNamespace() != "" {
			t.Errorf("%s is bound to namespace %s: OLM decides", file, object.GetNamespace())
		}
	}
	if found != 1 {
		t.Errorf("%d ClusterServiceVersions", found)
	}
}

// validatedFields checks that the schema has every field of the examples.
func validatedFields(t *testing.T) {
	for _, e := range examples(t) {
		s, _ := schema(t, e)
		for _, half := range []string{"spec", "status"} {
			block, _ := e.Object[half].(map[string]any)
			for name := range block {
				if _, known := s.Properties[half].Properties[name]; !known {
					t.Errorf("%s: the schema does not know %s.%s", e.GetKind(), half, name)
				}
			}
		}
	}
}

// resources checks that the CSV lists for every CRD the resources created for it, with kinds known to the console.
func resources(t *testing.T) {
	builtin := []string{"CronJob", "Deployment", "Job", "NetworkPolicy", "PersistentVolumeClaim", "Pod", "Role", "Secret", "Service", "ServiceAccount", "ConfigMap"}
	for _, d := range csv(t).Spec.CustomResourceDefinitions.Owned {
		if len(d.Resources) == 0 {
			t.Errorf("%s has no resources", d.Kind)
		}
		for _, r := range d.Resources {
			if r.Kind == "" || r.Version == "" || (r.Name == "") != slices.Contains(builtin, r.Kind) {
				t.Errorf("%s: got %+v, want a name exactly for kinds that are not built in", d.Kind, r)
			}
		}
	}
}

// specDescriptors checks that every field of the examples has a descriptor.
func specDescriptors(t *testing.T) {
	for _, e := range examples(t) {
		_, d := schema(t, e)
		described := map[string]bool{}
		for _, s := range d.SpecDescriptors {
			described[s.Path] = true
		}
		for name := range e.Object["spec"].(map[string]any) {
			if !described[name] {
				t.Errorf("%s: spec.%s has no descriptor", e.GetKind(), name)
			}
		}
	}
}

// statusDescriptors checks that a kind with a status has descriptors of it.
func statusDescriptors(t *testing.T) {
	for _, e := range examples(t) {
		s, d := schema(t, e)
		if _, has := s.Properties["status"]; has && len(d.StatusDescriptors) == 0 {
			t.Errorf("%s has a status without descriptors", e.GetKind())
		}
	}
}
