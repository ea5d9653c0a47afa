package bundle

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// scorecard maps the tests of the scorecard to functions with the same checks, because the scorecard needs a cluster that runs pods.
var scorecard = map[string]func(*testing.T){
	"basic-check-spec":         checkSpecs,
	"olm-bundle-validation":    checkBundle,
	"olm-crds-have-validation": checkSchemas,
	"olm-crds-have-resources":  checkResources,
	"olm-spec-descriptors":     checkSpecDescriptors,
	"olm-status-descriptors":   checkStatusDescriptors,
}

// The scorecard configuration of the bundle lists these tests, and they pass.
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
			t.Errorf("unknown scorecard test %s", test.Entrypoint[1])
			continue
		}
		t.Run(test.Entrypoint[1], check)
	}
}

// checkSpecs checks that every example has a spec.
func checkSpecs(t *testing.T) {
	for _, e := range examples(t) {
		if spec, _ := e.Object["spec"].(map[string]any); len(spec) == 0 {
			t.Errorf("%s %s has no spec", e.GetKind(), e.GetName())
		}
	}
}

// checkBundle checks the format of the bundle; TestValidatorsPass runs the validators.
func checkBundle(t *testing.T) {
	found := 0
	for file, object := range manifests(t) {
		if object.GetKind() == "ClusterServiceVersion" {
			found++
		}
		if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
			t.Errorf("%s: incomplete object %s %s %q", file, object.GetAPIVersion(), object.GetKind(), object.GetName())
		}
		if object.GetKind() != "ClusterServiceVersion" && object.GetNamespace() != "" {
			t.Errorf("%s has namespace %s, but OLM sets the namespace", file, object.GetNamespace())
		}
	}
	if found != 1 {
		t.Errorf("got %d ClusterServiceVersions, want 1", found)
	}
}

// checkSchemas checks that the schema has every top-level field of spec and status in the examples.
func checkSchemas(t *testing.T) {
	for _, e := range examples(t) {
		s, _ := schema(t, e)
		for _, section := range []string{"spec", "status"} {
			fields, _ := e.Object[section].(map[string]any)
			for name := range fields {
				if _, known := s.Properties[section].Properties[name]; !known {
					t.Errorf("%s: the schema has no field %s.%s", e.GetKind(), section, name)
				}
			}
		}
	}
}

// checkResources checks that the CSV lists resources for every CRD, with a name for each kind that the console does not know and for no other.
func checkResources(t *testing.T) {
	builtin := []string{"CronJob", "Deployment", "Job", "NetworkPolicy", "PersistentVolumeClaim", "Pod", "Role", "Secret", "Service", "ServiceAccount", "ConfigMap"}
	for _, d := range csv(t).Spec.CustomResourceDefinitions.Owned {
		if len(d.Resources) == 0 {
			t.Errorf("%s has no resources", d.Kind)
		}
		for _, r := range d.Resources {
			if r.Kind == "" || r.Version == "" || (r.Name == "") != slices.Contains(builtin, r.Kind) {
				t.Errorf("%s: got %+v, want a name for a kind that is not built in, and none for others", d.Kind, r)
			}
		}
	}
}

// checkSpecDescriptors checks that every top-level spec field of the examples has a descriptor.
func checkSpecDescriptors(t *testing.T) {
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

// checkStatusDescriptors checks that every kind with a status has status descriptors.
func checkStatusDescriptors(t *testing.T) {
	for _, e := range examples(t) {
		s, d := schema(t, e)
		if _, has := s.Properties["status"]; has && len(d.StatusDescriptors) == 0 {
			t.Errorf("%s has a status without descriptors", e.GetKind())
		}
	}
}
