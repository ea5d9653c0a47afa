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

// object returns a labelled Secret as sent by the API server.
func object(t *testing.T, namespace, name, source string, data map[string]string) *unstructured.Unstructured {
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

// No data from which the key could be derived is kept. [modelregistry-125]
func TestTrimSecretDropsTheKey(t *testing.T) {
	hashes := map[string]bool{}
	for _, c := range []struct{ name, key string }{{"a", "hf_planted"}, {"b", "hf_planted"}, {"a", "hf_other"}} {
		o := object(t, "ns", c.name, "team", map[string]string{Key: c.key, "note": "hf_planted too"})
		trimSecret(o)
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"planted", "aGZf", "note", "last-applied"} { // aGZf is the base64 prefix of hf_
			if strings.Contains(string(text), part) {
				t.Errorf("%s is left in %s", part, text)
			}
		}
		hash, _, _ := unstructured.NestedString(o.Object, "data", Key)
		if hash == "" || hashes[hash] {
			t.Errorf("hash %q of Secret %s is that of another one", hash, c.name)
		}
		hashes[hash] = true
	}
	for _, data := range []map[string]string{{}, {Key: ""}, {"apikey": "x"}} {
		o := object(t, "ns", "a", "team", data)
		trimSecret(o)
		if _, found := o.Object["data"]; found {
			t.Errorf("a key is found in %v", data)
		}
	}
}

// A namespace gets the keys of its own Secrets, and each change notifies the controller once.
func TestWatcher(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{corev1.SchemeGroupVersion.WithResource("secrets"): "SecretList"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds,
		object(t, "ns", "b", "team", map[string]string{Key: "1"}), object(t, "other", "a", "theirs", map[string]string{Key: "2"}))
	w := NewWatcher(client, "", clocktesting.NewFakeClock(time.Unix(0, 0)), logr.Discard())
	if v, known := w.KeysIn("ns"); known || len(v.Keys) > 0 {
		t.Errorf("got %+v before the start, want no keys", v)
	}
	var mu sync.Mutex
	reports := 0
	w.Subscribe(t.Context(), func([]keySecret) {
		mu.Lock()
		defer mu.Unlock()
		reports++
	})
	go func() { _ = w.Start(t.Context()) }()
	has := func(namespace string, want ...string) Selection {
		t.Helper()
		var v Selection
		poll.Until(t, 10*time.Second, fmt.Sprintf("%s has %v", namespace, want), func() bool {
			var known bool
			v, known = w.KeysIn(namespace)
			var got []string
			for _, k := range v.Keys {
				got = append(got, k.Secret+" "+k.Variable)
			}
			return known && cmp.Equal(want, got)
		})
		return v
	}
	before := has("ns", "b HF_API_KEY_TEAM")
	has("other", "a HF_API_KEY_THEIRS")
	has("third")
	poll.Until(t, 10*time.Second, "the watch runs", func() bool { return len(client.Actions()) >= 2 })
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace("ns")
	if _, err := secrets.Update(t.Context(), object(t, "ns", "b", "team", map[string]string{Key: "changed"}), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 10*time.Second, "another hash", func() bool { v, _ := w.KeysIn("ns"); return v.Hash != before.Hash })
	if err := secrets.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if v := has("ns"); v.Hash != "" {
		t.Errorf("hash %s of no keys", v.Hash)
	}
	mu.Lock()
	defer mu.Unlock()
	if reports != 3 {
		t.Errorf("%d reports, want 3", reports)
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
	poll.Until(t, 10*time.Second, "nothing is waited for", func() bool { _, known := w.KeysIn("ns"); return known })
	if v, _ := w.KeysIn("ns"); len(v.Keys) > 0 || v.Hash != "" || len(v.Problems) > 0 {
		t.Errorf("got %+v without permission, want neither keys nor problems", v)
	}
}

// [modelregistry-124]
func TestSelectKeys(t *testing.T) {
	good := func(name, source string) keySecret { return keySecret{"ns", name, source, "hash of " + name} }
	key := func(name, variable string) resources.HuggingFaceKey {
		return resources.HuggingFaceKey{Variable: variable, Secret: name, Key: Key}
	}
	for name, c := range map[string]struct {
		secrets  []keySecret
		want     []resources.HuggingFaceKey
		problems []string
	}{
		"no Secrets":     {nil, nil, nil},
		"two valid keys": {[]keySecret{good("a", "team_B"), good("b", "0")}, []resources.HuggingFaceKey{key("a", "HF_API_KEY_TEAM_B"), key("b", "HF_API_KEY_0")}, nil},
		"names that differ in case": {
			[]keySecret{good("a", "team"), good("b", "TEAM")}, []resources.HuggingFaceKey{key("a", "HF_API_KEY_TEAM")},
			[]string{"Secret b: HF_API_KEY_TEAM comes from Secret a already; give its label hub.kubeflow.org/hf-source another value"},
		},
		"without a key": {
			[]keySecret{{"ns", "a", "team", ""}, good("b", "team")}, []resources.HuggingFaceKey{key("b", "HF_API_KEY_TEAM")},
			[]string{"Secret a: the key apiKey is missing; add it, or remove the label hub.kubeflow.org/hf-source"},
		},
		"with a hyphen": {
			[]keySecret{good("a", "my-team"), good("b", "")}, nil,
			[]string{
				`Secret a: the label hub.kubeflow.org/hf-source is "my-team"; use only letters, digits and underscores`,
				`Secret b: the label hub.kubeflow.org/hf-source is ""; use only letters, digits and underscores`,
			},
		},
	} {
		v := selectKeys(c.secrets)
		if diff := cmp.Diff(c.want, v.Keys) + cmp.Diff(c.problems, v.Problems); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if (v.Hash == "") != (len(c.want) == 0) {
			t.Errorf("%s: hash %q", name, v.Hash)
		}
	}
	var many []keySecret
	for i := range maxKeys + 2 {
		many = append(many, good(fmt.Sprintf("s%02d", i), fmt.Sprintf("s%02d", i)))
	}
	if v := selectKeys(many); len(v.Keys) != maxKeys || len(v.Problems) != 2 || !strings.HasPrefix(v.Problems[0], "Secret s50: only 50 keys can be used") {
		t.Errorf("%d keys, problems %v", len(v.Keys), v.Problems)
	}
}
