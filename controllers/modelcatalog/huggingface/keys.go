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
	// Label marks Secrets with a key; its value says for which source the key is.
	Label = "hub.kubeflow.org/hf-source"
	// Key is where the key stands in them.
	Key = "apiKey"
)

// secret is what is known of a labelled Secret.
type keySecret struct {
	namespace, name, source string
	// hash of the key; empty where there is none.
	hash string
}

// Watcher follows labelled Secrets. It is a manager Runnable that runs on every replica.
type Watcher struct {
	*singleton.Watcher
	singleton.Listeners[struct{}] // with each change

	mu      sync.Mutex
	secrets []keySecret
	synced  bool
}

// NewWatcher returns one that looks in a namespace, or in all. It needs list and watch of Secrets, and finds none without these rights.
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

// condense leaves of a Secret the hash of its key. Without the uid as a key of the hash, which pods show, equal keys would show too.
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

// settle gives up waiting for what may not be read; what is known stays in force.
func (w *Watcher) onUnavailable() { w.update(func() {}) }

func (w *Watcher) update(change func()) {
	w.mu.Lock()
	before, settled := w.secrets, w.synced
	change()
	w.synced = true
	changed := !settled || !slices.Equal(before, w.secrets)
	w.mu.Unlock()
	if changed {
		w.Notify(struct{}{})
	}
}

// In returns what the server of a namespace gets, and whether that is known yet.
func (w *Watcher) KeysIn(namespace string) (Selection, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return selectKeys(slices.DeleteFunc(slices.Clone(w.secrets), func(s keySecret) bool { return s.namespace != namespace })), w.synced
}

// maxKeys bounds the variables of the server.
const maxKeys = 50

// sourcePattern is what can stand in the name of a variable.
var sourcePattern = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Verdict is what becomes of the labelled Secrets of a namespace.
type Selection struct {
	// Keys are the variables of the server, in the order of the names of their Secrets.
	Keys []resources.HuggingFaceKey
	// Hash changes with every key; empty without any.
	Hash string
	// Problems name the Secrets that are of no use, with cause and fix.
	Problems []string
}

// judge decides which Secrets the server gets. They come ordered by name, and of two with the same variable the first one counts.
func selectKeys(secrets []keySecret) Selection {
	var v Selection
	of, sum := map[string]string{}, sha256.New()
	for _, s := range secrets {
		variable := "HF_API_KEY_" + strings.ToUpper(s.source)
		problem := ""
		switch {
		case !sourcePattern.MatchString(s.source):
			problem = fmt.Sprintf("its label %s is %q, and may have letters, digits and underscores only; change it", Label, s.source)
		case s.hash == "":
			problem = "it has no key " + Key + "; add it, or take the label " + Label + " away"
		case of[variable] != "":
			problem = fmt.Sprintf("%s comes from Secret %s already; give its label %s another value", variable, of[variable], Label)
		case len(v.Keys) == maxKeys:
			problem = fmt.Sprintf("there are %d keys before it, and no more are taken; remove some", maxKeys)
		}
		if problem != "" {
			v.Problems = append(v.Problems, "Secret "+s.name+": "+problem)
			continue
		}
		of[variable] = s.name
		v.Keys = append(v.Keys, resources.HuggingFaceKey{Variable: variable, Secret: s.name, Key: Key})
		fmt.Fprintf(sum, "%s %s %s\n", variable, s.name, s.hash)
	}
	if len(v.Keys) > 0 {
		v.Hash = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return v
}
