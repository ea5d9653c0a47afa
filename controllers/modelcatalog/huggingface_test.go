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

// setHuggingFaceKeys sets the Secrets, each given as "name source value". A Secret without a value has no key.
func (env *testEnv) setHuggingFaceKeys(secrets ...string) {
	env.Helper()
	env.huggingFaceKeys = nil
	for _, text := range secrets {
		words := strings.Fields(text)
		o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{}}}
		o.SetNamespace("lab-registries")
		o.SetName(words[0])
		o.SetLabels(map[string]string{"hub.kubeflow.org/hf-source": words[1]})
		if len(words) > 2 {
			o.Object["data"] = map[string]any{"apiKey": words[2]}
		}
		env.r.apiKeys.Transform(o)
		env.huggingFaceKeys = append(env.huggingFaceKeys, o)
	}
	env.r.apiKeys.OnList(env.huggingFaceKeys)
}

// Keys for Hugging Face are variables of the server only. A change restarts its pods, and invalid Secrets are reported.
// [modelregistry-123] [modelregistry-124]
func TestHuggingFaceKeys(t *testing.T) {
	env := newTestEnv(t, newCatalog())
	env.reconcileUntilStable()
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
		{"no key", func() {}, nil, false, ""},
		{"one key", func() { env.setHuggingFaceKeys("mine team 1") }, []string{"HF_API_KEY_TEAM mine apiKey"}, true, ""},
		{"restart of the manager", env.restart, []string{"HF_API_KEY_TEAM mine apiKey"}, false, ""},
		{"two keys", func() { env.setHuggingFaceKeys("mine team 1", "ours lab 2") }, []string{"HF_API_KEY_TEAM mine apiKey", "HF_API_KEY_LAB ours apiKey"}, true, ""},
		{"changed key", func() { env.setHuggingFaceKeys("mine team 1", "ours lab 3") }, []string{"HF_API_KEY_TEAM mine apiKey", "HF_API_KEY_LAB ours apiKey"}, true, ""},
		{"invalid label", func() { env.setHuggingFaceKeys("mine team 1", "ours lab-x 3") }, []string{"HF_API_KEY_TEAM mine apiKey"}, true,
			`In namespace lab-registries: Secret ours: the label hub.kubeflow.org/hf-source is "lab-x"; use only letters, digits and underscores`},
		{"Secret without a key", func() { env.setHuggingFaceKeys("mine team 1", "ours lab") }, []string{"HF_API_KEY_TEAM mine apiKey"}, false,
			"In namespace lab-registries: Secret ours: the key apiKey is missing or empty; set it, or remove the label hub.kubeflow.org/hf-source"},
		{"keys deleted", func() { env.setHuggingFaceKeys() }, nil, true, ""},
	} {
		step.do()
		env.reconcileUntilStable()
		var got []string
		for _, v := range mustGet(env, server).Spec.Template.Spec.Containers[0].Env {
			if strings.HasPrefix(v.Name, "HF_") {
				from := v.ValueFrom.SecretKeyRef
				got = append(got, v.Name+" "+from.Name+" "+from.Key)
				if !*from.Optional {
					t.Errorf("%s: the variable of Secret %s is not optional", step.name, from.Name)
				}
			}
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: variables %v, want %v", step.name, got, step.want)
		}
		current := server.Spec.Template.Annotations[annotation]
		if (current != hash) != step.rolls || (current == "") != (len(step.want) == 0) {
			t.Errorf("%s: the hash changed from %q to %q, want a change: %t", step.name, hash, current, step.rolls)
		}
		hash = current
		condition, _ := conditions.Get(mustGet(env, newCatalog()).Status.Conditions, ConditionHuggingFaceKeys)
		if condition.Message != step.problem {
			t.Errorf("%s: condition %+v", step.name, condition)
		}
		if mustGet(env, database).Spec.Template.Annotations[annotation] != "" {
			t.Errorf("%s: the pod template of the database has the hash", step.name)
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
