package huggingface

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/test/poll"
)

// newSecret returns a labelled Secret as sent by the API server.
func newSecret(t *testing.T, namespace, name, source string, data map[string]string) *unstructured.Unstructured {
	t.Helper()
	s := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid of " + namespace + name), Labels: map[string]string{Label: source},
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": fmt.Sprint(data)},
		},
		Data: map[string][]byte{},
	}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// The trimmed Secret contains no data from which the key can be derived. [modelregistry-125]
func TestTrimSecretDropsTheKey(t *testing.T) {
	hashes := map[string]bool{}
	for _, test := range []struct{ name, key string }{{"a", "hf_planted"}, {"b", "hf_planted"}, {"a", "hf_other"}} {
		o := newSecret(t, "ns", test.name, "team", map[string]string{SecretKey: test.key, "note": "hf_planted too"})
		trimSecret(o)
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"planted", "aGZf", "note", "last-applied"} { // aGZf is the base64 prefix of hf_
			if strings.Contains(string(text), part) {
				t.Errorf("the trimmed Secret contains %q: %s", part, text)
			}
		}
		hash, _, _ := unstructured.NestedString(o.Object, "data", SecretKey)
		if hash == "" || hashes[hash] {
			t.Errorf("hash %q of Secret %s is not unique", hash, test.name)
		}
		hashes[hash] = true
	}
	for _, data := range []map[string]string{{}, {SecretKey: ""}, {"apikey": "x"}} {
		o := newSecret(t, "ns", "a", "team", data)
		trimSecret(o)
		if _, found := o.Object["data"]; found {
			t.Errorf("got a hash for data %v without an API key", data)
		}
	}
}

// A namespace gets the keys of its own Secrets, and each change notifies the controller once.
func TestWatcher(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{corev1.SchemeGroupVersion.WithResource("secrets"): "SecretList"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds,
		newSecret(t, "ns", "b", "team", map[string]string{SecretKey: "1"}), newSecret(t, "other", "a", "theirs", map[string]string{SecretKey: "2"}))
	w := NewWatcher(client, "", clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard())
	if v, known := w.KeysIn("ns"); known || len(v.APIKeys) > 0 {
		t.Errorf("got %+v before the start, want no keys", v)
	}
	var mu sync.Mutex
	notifications := 0
	w.Subscribe(t.Context(), func([]keySecret) {
		mu.Lock()
		defer mu.Unlock()
		notifications++
	})
	go func() { _ = w.Start(t.Context()) }()
	waitForKeys := func(namespace string, want ...string) Selection {
		t.Helper()
		var v Selection
		poll.Until(t, 10*time.Second, fmt.Sprintf("namespace %s has keys %v", namespace, want), func() bool {
			var known bool
			v, known = w.KeysIn(namespace)
			var got []string
			for _, k := range v.APIKeys {
				got = append(got, k.Secret+" "+k.Variable)
			}
			return known && cmp.Equal(want, got)
		})
		return v
	}
	original := waitForKeys("ns", "b HF_API_KEY_TEAM")
	waitForKeys("other", "a HF_API_KEY_THEIRS")
	waitForKeys("third")
	poll.Until(t, 10*time.Second, "the watch has started", func() bool { return len(client.Actions()) >= 2 })
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("ns")
	if _, err := secrets.Update(t.Context(), newSecret(t, "ns", "b", "team", map[string]string{SecretKey: "changed"}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 10*time.Second, "the hash has changed", func() bool { v, _ := w.KeysIn("ns"); return v.Hash != original.Hash })
	if err := secrets.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if v := waitForKeys("ns"); v.Hash != "" {
		t.Errorf("got hash %s without keys, want none", v.Hash)
	}
	mu.Lock()
	defer mu.Unlock()
	if notifications != 3 {
		t.Errorf("got %d notifications, want 3", notifications)
	}
}

// Without permission there are no keys, and the controller does not wait. [modelregistry-126]
func TestWatcherWithoutPermission(t *testing.T) {
	secrets := corev1.SchemeGroupVersion.WithResource("secrets")
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{secrets: "SecretList"})
	client.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(secrets.GroupResource(), "", errors.New("no"))
	})
	w := NewWatcher(client, "ns", clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard())
	go func() { _ = w.Start(t.Context()) }()
	poll.Until(t, 10*time.Second, "the keys are known", func() bool { _, known := w.KeysIn("ns"); return known })
	if v, _ := w.KeysIn("ns"); len(v.APIKeys) > 0 || v.Hash != "" || len(v.Problems) > 0 {
		t.Errorf("got %+v without permission, want neither keys nor problems", v)
	}
}

// [modelregistry-124]
func TestSelectKeys(t *testing.T) {
	valid := func(name, source string) keySecret { return keySecret{"ns", name, source, "hash of " + name} }
	key := func(name, variable string) resources.HuggingFaceAPIKey {
		return resources.HuggingFaceAPIKey{Variable: variable, Secret: name, SecretKey: SecretKey}
	}
	for name, test := range map[string]struct {
		secrets  []keySecret
		want     []resources.HuggingFaceAPIKey
		problems []string
	}{
		"no Secrets":     {nil, nil, nil},
		"two valid keys": {[]keySecret{valid("a", "team_B"), valid("b", "0")}, []resources.HuggingFaceAPIKey{key("a", "HF_API_KEY_TEAM_B"), key("b", "HF_API_KEY_0")}, nil},
		"sources that differ in case": {
			[]keySecret{valid("a", "team"), valid("b", "TEAM")}, []resources.HuggingFaceAPIKey{key("a", "HF_API_KEY_TEAM")},
			[]string{"Secret b: HF_API_KEY_TEAM is already set by Secret a; change the label hub.kubeflow.org/hf-source of one of the Secrets"},
		},
		"without a key": {
			[]keySecret{{"ns", "a", "team", ""}, valid("b", "team")}, []resources.HuggingFaceAPIKey{key("b", "HF_API_KEY_TEAM")},
			[]string{"Secret a: the key apiKey is missing or empty; set it, or remove the label hub.kubeflow.org/hf-source"},
		},
		"invalid labels": {
			[]keySecret{valid("a", "my-team"), valid("b", "")}, nil,
			[]string{
				`Secret a: the label hub.kubeflow.org/hf-source is "my-team"; use only letters, digits and underscores`,
				`Secret b: the label hub.kubeflow.org/hf-source is ""; use only letters, digits and underscores`,
			},
		},
	} {
		v := selectKeys(test.secrets)
		if diff := cmp.Diff(test.want, v.APIKeys) + cmp.Diff(test.problems, v.Problems); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (v.Hash == "") != (len(test.want) == 0) {
			t.Errorf("%s: hash %q", name, v.Hash)
		}
	}
	var many []keySecret
	for i := range maxKeys + 2 {
		many = append(many, valid(fmt.Sprintf("s%02d", i), fmt.Sprintf("s%02d", i)))
	}
	if v := selectKeys(many); len(v.APIKeys) != maxKeys || len(v.Problems) != 2 || !strings.HasPrefix(v.Problems[0], "Secret s50: only 50 keys can be used") {
		t.Errorf("got %d keys and problems %v, want %d keys", len(v.APIKeys), v.Problems, maxKeys)
	}
}
