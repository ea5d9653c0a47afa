package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/apis/server"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
)

// Kind is the kind of a referenced object or field.
type Kind string

// Kinds of references.
const (
	Image                    Kind = "image"
	Container                Kind = "container"
	Account                  Kind = "ServiceAccount"
	Secret                   Kind = "Secret"
	ConfigMap                Kind = "ConfigMap"
	Token                    Kind = "token of a ServiceAccount"
	Volume                   Kind = "volume"
	Label                    Kind = "label of pods"
	Annotation               Kind = "annotation of pods"
	ExistingData             Kind = "existing data for a volume" // PersistentVolume or data source of a claim that is created
	ResourceClaim            Kind = "resource claim"
	Host                     Kind = "domain"
	RuntimeAnnotation        Kind = "annotation of a runtime"
	ServiceAccountAnnotation Kind = "annotation of a ServiceAccount"
	Priority                 Kind = "PriorityClass"
	// EgressURL is a server to which the content of a Secret is sent. Its name is that of the Secret.
	EgressURL Kind = "another server for Secret"
	// Privilege is a field of pods that the Pod Security level does not allow.
	Privilege Kind = "privilege"
)

// Reference is an object or a field that pods use.
type Reference struct {
	Kind Kind
	// Name is the name of the object in the namespace of the pods, or text that identifies the field, such as an image, the key of a label
	// or the violation of a Pod Security level.
	Name string
	// content distinguishes references of the same name.
	content string
	// path is the path of the field.
	path string
}

// References are the references of the pods of one object.
type References struct {
	// Namespace is the namespace of the pods; empty means any.
	Namespace string
	items     []Reference
}

// Add adds a reference, unless its name is empty.
func (r *References) Add(kind Kind, name string, path *field.Path) {
	if name != "" {
		r.items = append(r.items, Reference{Kind: kind, Name: name, path: path.String()})
	}
}

// AddContent adds a reference that is compared by name and content.
func (r *References) AddContent(kind Kind, name string, content any, path *field.Path) {
	text, err := json.Marshal(content)
	if err != nil { // cannot be compared
		text = []byte(err.Error())
	}
	r.items = append(r.items, Reference{Kind: kind, Name: name, content: string(text), path: path.String()})
}

// AddEgressURL adds the server to which the content of a Secret is sent, if both are set. A user who cannot read the Secret must not send it
// to another server either.
func (r *References) AddEgressURL(secret, host string, port *int32, path *field.Path) {
	if secret != "" && host != "" {
		r.AddContent(EgressURL, secret, []any{host, port}, path)
	}
}

// AddMetadata adds labels or annotations of pods, or annotations of a ServiceAccount.
func (r *References) AddMetadata(kind Kind, values map[string]string, path *field.Path) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		r.items = append(r.items, Reference{Kind: kind, Name: key, content: values[key], path: path.Key(key).String()})
	}
}

// AddPod adds the references of a pod spec. Images and containers are included, because the author chooses all of them.
func (r *References) AddPod(spec *corev1.PodSpec, path *field.Path) {
	r.AddReferences(toJSON(spec), path)
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			c := list.containers[i].DeepCopy()
			containerPath := path.Child(list.name).Index(i)
			r.Add(Image, c.Image, containerPath.Child("image"))
			c.Resources, c.Image, c.ImagePullPolicy = corev1.ResourceRequirements{}, "", "" // Image is a reference of its own
			r.AddContent(Container, c.Name, c, containerPath)
		}
	}
	for i, claim := range spec.ResourceClaims {
		r.AddContent(ResourceClaim, claim.Name, claim, path.Child("resourceClaims").Index(i))
	}
	for i := range spec.Volumes {
		if !isEmptyOrReferenced(&spec.Volumes[i]) {
			r.AddContent(Volume, spec.Volumes[i].Name, spec.Volumes[i], path.Child("volumes").Index(i))
		}
	}
}

// AddServer adds the priority class and the volumes of a server; AddReferences finds its Secrets and ConfigMaps. Mounted volumes can replace
// the binary of the server.
func (r *References) AddServer(pods *server.CommonPods, path *field.Path) {
	r.Add(Priority, pods.PriorityClassName, path.Child("priorityClassName"))
	for i := range pods.Volumes {
		r.AddContent(Volume, pods.Volumes[i].Name, pods.Volumes[i], path.Child("volumes").Index(i))
	}
	for i := range pods.VolumeMounts {
		r.AddContent(Volume, pods.VolumeMounts[i].Name, pods.VolumeMounts[i], path.Child("volumeMounts").Index(i))
	}
}

// isEmptyOrReferenced reports whether a volume is an emptyDir or contains only fields of the pod, or AddReferences finds its source.
func isEmptyOrReferenced(v *corev1.Volume) bool {
	return v.EmptyDir != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}

// toJSON converts a typed value to generic JSON values.
func toJSON(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return nil
	}
	return out
}

// AddReferences adds the Secrets, ConfigMaps, ServiceAccounts and tokens anywhere in a value, which must be convertible to JSON. It recognizes
// them by the field names that are usual in the APIs of Kubernetes and of this operator.
func (r *References) AddReferences(value any, path *field.Path) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.addField(key, v[key], path.Child(key))
			r.AddReferences(v[key], path.Child(key))
		}
	case []any:
		for i := range v {
			r.AddReferences(v[i], path.Index(i))
		}
	case string, bool, float64, int64, nil:
	default:
		r.AddReferences(toJSON(value), path)
	}
}

func (r *References) addField(key string, value any, path *field.Path) {
	lowerKey := strings.ToLower(key)
	name, _ := value.(string)
	switch {
	case lowerKey == "serviceaccountname" || lowerKey == "serviceaccount":
		r.Add(Account, name, path)
	case lowerKey == "serviceaccounttoken" || lowerKey == "podcertificate": // both authenticate the pod
		r.AddContent(Token, key, value, path)
	case lowerKey == "imagepullsecrets":
		for i, item := range nested.List(value) {
			r.Add(Secret, nested.String(item, "name"), path.Index(i).Child("name"))
		}
	case hasSuffix(lowerKey, "secretname"):
		r.Add(Secret, name, path)
	case hasSuffix(lowerKey, "configmapname"):
		r.Add(ConfigMap, name, path)
	case hasSuffix(lowerKey, "secret", "secretref", "secretkeyref", "urifrom"):
		r.Add(Secret, nested.String(value, "name"), path.Child("name"))
	case hasSuffix(lowerKey, "configmap", "configmapref", "configmapkeyref"):
		r.Add(ConfigMap, nested.String(value, "name"), path.Child("name"))
	}
}

func hasSuffix(word string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(word, s) })
}

// Remove removes references by name, such as those to objects that the manager creates or ships.
func (r *References) Remove(kind Kind, names ...string) {
	r.items = slices.DeleteFunc(r.items, func(reference Reference) bool {
		return reference.Kind == kind && slices.Contains(names, reference.Name)
	})
}

// addedSince returns the references that before does not contain, without duplicates.
func (r References) addedSince(before References) []Reference {
	seen := map[Reference]bool{}
	for _, reference := range before.items {
		reference.path = ""
		seen[reference] = true
	}
	var added []Reference
	for _, reference := range r.items {
		withoutPath := reference
		withoutPath.path = ""
		if !seen[withoutPath] {
			seen[withoutPath] = true
			added = append(added, reference)
		}
	}
	return added
}

// String returns the reference for messages.
func (r Reference) String() string { return fmt.Sprintf("%s %q", r.Kind, r.Name) }
