package huggingface

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

const (
	// Label marks Secrets with a key. Its value is the source that the key is for.
	Label = "hub.kubeflow.org/hf-source"
	// Key is the data key of the Secret.
	Key = "apiKey"
)

// keySecret is a labelled Secret.
type keySecret struct {
	namespace, name, source string
	// hash of the key, "" without a key.
	hash string
}

// Watcher watches labelled Secrets. It is a manager.Runnable that runs on every replica.
type Watcher struct {
	*singleton.Watcher
	singleton.Listeners[struct{}] // notified on each change

	mu      sync.Mutex
	secrets []keySecret
	synced  bool
}

// NewWatcher returns a Watcher for one namespace, or for all. It needs list and watch on Secrets; without them it finds none.
func NewWatcher(client dynamic.Interface, namespace string, clk clock.Clock, log logr.Logger) *Watcher {
	w := &Watcher{}
	resource := corev1.SchemeGroupVersion.WithResource("secrets")
	w.Watcher = singleton.New(singleton.Options{
		Client: client.Resource(resource).Namespace(namespace), Resource: resource.GroupResource(), Labels: Label, Clock: clk, Log: log,
		OnList: w.onList, Transform: trimSecret, OnUnavailable: w.onUnavailable,
	})
	w.SetServed(true)
	return w
}

// trimSecret replaces the data of a Secret by a hash of the key. The hash, which is visible on pods, is keyed by the UID, so that equal
// keys have different hashes.
func trimSecret(object *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(object.Object, "data", Key) // a Secret has no other types
	delete(object.Object, "data")
	object.SetAnnotations(nil)
	object.SetManagedFields(nil)
	if text != "" {
		mac := hmac.New(sha256.New, []byte(object.GetUID()))
		mac.Write([]byte(text))
		object.Object["data"] = map[string]any{Key: hex.EncodeToString(mac.Sum(nil)[:8])}
	}
}

func (w *Watcher) onList(objects []*unstructured.Unstructured) {
	all := make([]keySecret, 0, len(objects))
	for _, o := range objects {
		hash, _, _ := unstructured.NestedString(o.Object, "data", Key)
		all = append(all, keySecret{o.GetNamespace(), o.GetName(), o.GetLabels()[Label], hash})
	}
	w.update(func() { w.secrets = all })
}

// onUnavailable ends the wait for the first list if Secrets cannot be read. Known Secrets are kept.
func (w *Watcher) onUnavailable() { w.update(func() {}) }

func (w *Watcher) update(change func()) {
	w.mu.Lock()
	previous, synced := w.secrets, w.synced
	change()
	w.synced = true
	changed := !synced || !slices.Equal(previous, w.secrets)
	w.mu.Unlock()
	if changed {
		w.Notify(struct{}{})
	}
}

// KeysIn returns the selected keys of a namespace, and whether the first list is complete.
func (w *Watcher) KeysIn(namespace string) (Selection, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return selectKeys(slices.DeleteFunc(slices.Clone(w.secrets), func(s keySecret) bool { return s.namespace != namespace })), w.synced
}

// maxKeys limits the environment variables of the server.
const maxKeys = 50

// sourcePattern matches valid parts of a variable name.
var sourcePattern = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Selection is the result for the labelled Secrets of a namespace.
type Selection struct {
	// Keys are the variables of the server, ordered by the names of their Secrets.
	Keys []resources.HuggingFaceKey
	// Hash changes with any key; "" without keys.
	Hash string
	// Problems describe invalid Secrets, with cause and fix.
	Problems []string
}

// selectKeys selects the Secrets for the server. They are ordered by name, and the first one with a variable wins.
func selectKeys(secrets []keySecret) Selection {
	var selection Selection
	secretOf, sum := map[string]string{}, sha256.New()
	for _, s := range secrets {
		variable := "HF_API_KEY_" + strings.ToUpper(s.source)
		problem := ""
		switch {
		case !sourcePattern.MatchString(s.source):
			problem = fmt.Sprintf("the label %s is %q; use only letters, digits and underscores", Label, s.source)
		case s.hash == "":
			problem = "it has no key " + Key + "; add it, or remove the label " + Label
		case secretOf[variable] != "":
			problem = fmt.Sprintf("%s comes from Secret %s already; give its label %s another value", variable, secretOf[variable], Label)
		case len(selection.Keys) == maxKeys:
			problem = fmt.Sprintf("only %d keys can be used; remove the label from other Secrets", maxKeys)
		}
		if problem != "" {
			selection.Problems = append(selection.Problems, "Secret "+s.name+": "+problem)
			continue
		}
		secretOf[variable] = s.name
		selection.Keys = append(selection.Keys, resources.HuggingFaceKey{Variable: variable, Secret: s.name, Key: Key})
		fmt.Fprintf(sum, "%s %s %s\n", variable, s.name, s.hash)
	}
	if len(selection.Keys) > 0 {
		selection.Hash = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return selection
}
