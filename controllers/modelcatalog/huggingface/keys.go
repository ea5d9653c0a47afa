package huggingface

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/singleton"
)

const (
	// Label marks Secrets with an API key. Its value is the source that the API key is for.
	Label = "hub.kubeflow.org/hf-source"
	// SecretKey is the key of the Secret that contains the API key.
	SecretKey = "apiKey"
)

// keySecret is a Secret with Label. Its fields are exported because it is compared by reflection.
type keySecret struct {
	Namespace, Name, Source string
	// Hash is the hash of the API key, or "" if the key is missing or empty.
	Hash string
}

// Watcher watches Secrets with Label. It is a manager.Runnable that runs on every replica.
type Watcher struct{ *singleton.Value[[]keySecret] }

// NewWatcher returns a Watcher for one namespace, or for all. Without permission to list Secrets, it keeps the last API keys,
// initially none.
func NewWatcher(client dynamic.Interface, namespace string, clk clock.Clock, log logr.Logger) *Watcher {
	resource := corev1.SchemeGroupVersion.WithResource("secrets")
	secrets := singleton.NewList(singleton.Options{
		Client: client.Resource(resource).Namespace(namespace), Resource: resource.GroupResource(), Labels: Label, Clock: clk, Log: log, Transform: trimSecret,
	}, singleton.AbsentUnlessKnown, keySecretsOf)
	secrets.SetServed(true)
	return &Watcher{secrets}
}

// trimSecret replaces the data of a Secret by an HMAC of the API key. The UID of the Secret is the key of the HMAC, so that equal API keys have
// different hashes.
func trimSecret(object *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(object.Object, "data", SecretKey) // values of Secrets are strings
	delete(object.Object, "data")
	object.SetAnnotations(nil)
	object.SetManagedFields(nil)
	if text != "" {
		mac := hmac.New(sha256.New, []byte(object.GetUID()))
		mac.Write([]byte(text))
		object.Object["data"] = map[string]any{SecretKey: hex.EncodeToString(mac.Sum(nil)[:8])}
	}
}

func keySecretsOf(objects []*unstructured.Unstructured) []keySecret {
	all := make([]keySecret, 0, len(objects))
	for _, o := range objects {
		hash, _, _ := unstructured.NestedString(o.Object, "data", SecretKey)
		all = append(all, keySecret{o.GetNamespace(), o.GetName(), o.GetLabels()[Label], hash})
	}
	return all
}

// KeysIn returns the selected API keys of a namespace, and whether they are known.
func (w *Watcher) KeysIn(namespace string) (Selection, bool) {
	secrets, known := w.Current()
	return selectKeys(slices.DeleteFunc(slices.Clone(secrets), func(s keySecret) bool { return s.Namespace != namespace })), known
}

// maxKeys limits the number of API keys, each an environment variable of the server.
const maxKeys = 50

// sourcePattern matches sources that are valid in the name of an environment variable.
var sourcePattern = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Selection is the result for the Secrets with Label in a namespace.
type Selection struct {
	// APIKeys are ordered by the names of their Secrets.
	APIKeys []resources.HuggingFaceAPIKey
	// Hash changes with any API key; "" without API keys.
	Hash string
	// Problems describe invalid Secrets, with cause and fix.
	Problems []string
}

// selectKeys selects the API keys for the server from Secrets ordered by name. Of Secrets with the same variable, it selects the first.
func selectKeys(secrets []keySecret) Selection {
	var selection Selection
	secretOf, sum := map[string]string{}, sha256.New()
	for _, secret := range secrets {
		variable := "HF_API_KEY_" + strings.ToUpper(secret.Source)
		problem := ""
		switch {
		case !sourcePattern.MatchString(secret.Source):
			problem = fmt.Sprintf("the label %s is %q; use only letters, digits and underscores", Label, secret.Source)
		case secret.Hash == "":
			problem = "the key " + SecretKey + " is missing or empty; set it, or remove the label " + Label
		case secretOf[variable] != "":
			problem = fmt.Sprintf("%s is already set by Secret %s; change the label %s of one of the Secrets", variable, secretOf[variable], Label)
		case len(selection.APIKeys) == maxKeys:
			problem = fmt.Sprintf("only %d keys can be used; remove the label from other Secrets", maxKeys)
		}
		if problem != "" {
			selection.Problems = append(selection.Problems, "Secret "+secret.Name+": "+problem)
			continue
		}
		secretOf[variable] = secret.Name
		selection.APIKeys = append(selection.APIKeys, resources.HuggingFaceAPIKey{Variable: variable, Secret: secret.Name, SecretKey: SecretKey})
		fmt.Fprintf(sum, "%s %s %s\n", variable, secret.Name, secret.Hash)
	}
	if len(selection.APIKeys) > 0 {
		selection.Hash = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return selection
}
