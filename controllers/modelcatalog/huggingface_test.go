package modelcatalog

import (
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/status/conditions"
)

// setHuggingFaceKeys sets the Secrets as "name source value"; without a value they have no key.
func (b *testEnv) setHuggingFaceKeys(secrets ...string) {
	b.Helper()
	b.huggingFaceKeys = nil
	for _, text := range secrets {
		words := strings.Fields(text)
		o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{}}}
		o.SetNamespace("lab-registries")
		o.SetName(words[0])
		o.SetLabels(map[string]string{"hub.kubeflow.org/hf-source": words[1]})
		if len(words) > 2 {
			o.Object["data"] = map[string]any{"apiKey": words[2]}
		}
		b.r.keys.Transform(o)
		b.huggingFaceKeys = append(b.huggingFaceKeys, o)
	}
	b.r.keys.OnList(b.huggingFaceKeys)
}

// Keys for Hugging Face are variables of the server only, a change rolls its pods once, and invalid Secrets are reported.
// [modelregistry-123] [modelregistry-124]
func TestHuggingFaceKeys(t *testing.T) {
	b := newTestEnv(t, sample())
	b.reconcileUntilStable()
	server, database := &appsv1.Deployment{ObjectMeta: nameMeta(resources.Name)}, &appsv1.Deployment{ObjectMeta: nameMeta(resources.DatabaseName)}
	const annotation = "modelregistry.opendatahub.io/hf-secrets-hash"
	hash := ""
	for _, step := range []struct {
		name    string
		do      func()
		want    []string
		rolls   bool
		problem string
	}{
		{"none", func() {}, nil, false, ""},
		{"one", func() { b.setHuggingFaceKeys("mine team 1") }, []string{"HF_API_KEY_TEAM mine apiKey"}, true, ""},
		{"a restart", b.restart, []string{"HF_API_KEY_TEAM mine apiKey"}, false, ""},
		{"two", func() { b.setHuggingFaceKeys("mine team 1", "ours lab 2") }, []string{"HF_API_KEY_TEAM mine apiKey", "HF_API_KEY_LAB ours apiKey"}, true, ""},
		{"another key", func() { b.setHuggingFaceKeys("mine team 1", "ours lab 3") }, []string{"HF_API_KEY_TEAM mine apiKey", "HF_API_KEY_LAB ours apiKey"}, true, ""},
		{"a label that is no name", func() { b.setHuggingFaceKeys("mine team 1", "ours lab-x 3") }, []string{"HF_API_KEY_TEAM mine apiKey"}, true,
			`In namespace lab-registries: Secret ours: the label hub.kubeflow.org/hf-source is "lab-x"; use only letters, digits and underscores`},
		{"a Secret without a key", func() { b.setHuggingFaceKeys("mine team 1", "ours lab") }, []string{"HF_API_KEY_TEAM mine apiKey"}, false,
			"In namespace lab-registries: Secret ours: the key apiKey is missing; add it, or remove the label hub.kubeflow.org/hf-source"},
		{"none again", func() { b.setHuggingFaceKeys() }, nil, true, ""},
	} {
		step.do()
		b.reconcileUntilStable()
		var got []string
		for _, v := range must(b, server).Spec.Template.Spec.Containers[0].Env {
			if strings.HasPrefix(v.Name, "HF_") {
				from := v.ValueFrom.SecretKeyRef
				got = append(got, v.Name+" "+from.Name+" "+from.Key)
				if !*from.Optional {
					t.Errorf("%s: pods do not start while Secret %s is missing", step.name, from.Name)
				}
			}
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: variables %v, want %v", step.name, got, step.want)
		}
		now := server.Spec.Template.Annotations[annotation]
		if (now != hash) != step.rolls || (now == "") != (len(step.want) == 0) {
			t.Errorf("%s: hash %q after %q", step.name, now, hash)
		}
		hash = now
		condition, _ := conditions.Get(must(b, sample()).Status.Conditions, ConditionHuggingFaceKeys)
		if condition.Message != step.problem {
			t.Errorf("%s: condition %+v", step.name, condition)
		}
		if must(b, database).Spec.Template.Annotations[annotation] != "" {
			t.Errorf("%s: the database rolls too", step.name)
		}
	}
}

// The role may only list and watch Secrets. [modelregistry-126]
func TestHuggingFaceRBAC(t *testing.T) {
	text, err := os.ReadFile("../../config/rbac/modelcatalog/huggingface/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(strings.TrimPrefix(string(text), "---\n")), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rules) != 1 || !slices.Equal(r.Rules[0].Verbs, []string{"list", "watch"}) || !slices.Equal(r.Rules[0].Resources, []string{"secrets"}) {
		t.Errorf("rules %+v", r.Rules)
	}
}
