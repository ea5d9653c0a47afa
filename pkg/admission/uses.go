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
)

// Kind is what sort of thing is used.
type Kind string

// The kinds of things that pods use.
const (
	Image       Kind = "image"
	Container   Kind = "container"
	Account     Kind = "ServiceAccount"
	Secret      Kind = "Secret"
	ConfigMap   Kind = "ConfigMap"
	Token       Kind = "token of a ServiceAccount"
	Volume      Kind = "volume"
	Label       Kind = "label of pods"
	Annotation  Kind = "annotation of pods"
	Claim       Kind = "existing data for a volume"
	Device      Kind = "resource claim"
	Host        Kind = "domain"
	Publication Kind = "annotation of a runtime"
	AccountNote Kind = "annotation of a ServiceAccount"
	Priority    Kind = "PriorityClass"
	// Receiver is a server that is sent what a Secret holds. Its name is that of the Secret.
	Receiver Kind = "another server for Secret"
	// Privilege is a field of pods that the Pod Security level does not allow.
	Privilege Kind = "privilege"
)

// Reference is one thing that pods use because the author of an object asks for it.
type Reference struct {
	Kind Kind
	// Name of the thing in the namespace of the pods; of a privilege, what is wrong with it.
	Name string
	// content tells apart what has the same name.
	content string
	// path is that of the field.
	path string
}

// References is what the pods of one object use by the word of its author.
type References struct {
	// Namespace of the pods; empty for any.
	Namespace string
	all       []Reference
}

// Add adds a thing that is used; one without a name is none.
func (u *References) Add(kind Kind, name string, path *field.Path) {
	if name != "" {
		u.all = append(u.all, Reference{Kind: kind, Name: name, path: path.String()})
	}
}

// AddContent adds a thing of which not only the name counts but its whole description.
func (u *References) AddContent(kind Kind, name string, content any, path *field.Path) {
	text, err := json.Marshal(content)
	if err != nil { // then it can be compared with nothing
		text = []byte(err.Error())
	}
	u.all = append(u.all, Reference{Kind: kind, Name: name, content: string(text), path: path.String()})
}

// AddEgressURL adds the server that is sent what a Secret holds, where there are both. Who may not read the Secret may not send it to
// a server of his own either.
func (u *References) AddEgressURL(secret, host string, port *int32, path *field.Path) {
	if secret != "" && host != "" {
		u.AddContent(Receiver, secret, []any{host, port}, path)
	}
}

// AddMetadata adds labels and annotations of pods.
func (u *References) AddMetadata(kind Kind, values map[string]string, path *field.Path) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		u.all = append(u.all, Reference{Kind: kind, Name: key, content: values[key], path: path.Key(key).String()})
	}
}

// AddPod adds what a pod uses that has these fields. Images and what containers run are counted: the author chooses all of them,
// are in it.
func (u *References) AddPod(spec *corev1.PodSpec, path *field.Path) {
	u.AddReferences(plain(spec), path)
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			c := list.containers[i].DeepCopy()
			at := path.Child(list.name).Index(i)
			u.Add(Image, c.Image, at.Child("image"))
			c.Resources, c.Image, c.ImagePullPolicy = corev1.ResourceRequirements{}, "", "" // none of them changes what runs
			u.AddContent(Container, c.Name, c, at)
		}
	}
	for i, claim := range spec.ResourceClaims {
		u.AddContent(Device, claim.Name, claim, path.Child("resourceClaims").Index(i))
	}
	for i := range spec.Volumes {
		if !held(&spec.Volumes[i]) {
			u.AddContent(Volume, spec.Volumes[i].Name, spec.Volumes[i], path.Child("volumes").Index(i))
		}
	}
}

// AddServer adds what the fields that servers share make pods use, beside the Secrets and ConfigMaps that AddReferences finds in them.
// What is mounted may take the place of the program of the server.
func (u *References) AddServer(more *server.More, path *field.Path) {
	u.Add(Priority, more.PriorityClassName, path.Child("priorityClassName"))
	for i := range more.Volumes {
		u.AddContent(Volume, more.Volumes[i].Name, more.Volumes[i], path.Child("volumes").Index(i))
	}
	for i := range more.VolumeMounts {
		u.AddContent(Volume, more.VolumeMounts[i].Name, more.VolumeMounts[i], path.Child("volumeMounts").Index(i))
	}
}

// held reports whether a volume is empty, or what it shows is counted by itself.
func held(v *corev1.Volume) bool {
	return v.EmptyDir != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}

// plain turns typed values into those of JSON.
func plain(value any) any {
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

// AddReferences adds the Secrets, ConfigMaps, accounts and tokens that a value names, anywhere in it. The value is one of JSON, or one
// that JSON can be made of. What a field means follows from its name: all APIs of Kubernetes, and ours, keep to it.
func (u *References) AddReferences(value any, path *field.Path) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			u.addField(key, v[key], path.Child(key))
			u.AddReferences(v[key], path.Child(key))
		}
	case []any:
		for i := range v {
			u.AddReferences(v[i], path.Index(i))
		}
	case string, bool, float64, int64, nil:
	default:
		u.AddReferences(plain(value), path)
	}
}

func (u *References) addField(key string, value any, path *field.Path) {
	word := strings.ToLower(key)
	text, _ := value.(string)
	switch {
	case word == "serviceaccountname" || word == "serviceaccount":
		u.Add(Account, text, path)
	case word == "serviceaccounttoken" || word == "podcertificate": // both show who the pod is
		u.AddContent(Token, key, value, path)
	case word == "imagepullsecrets":
		list, _ := value.([]any)
		for i := range list {
			u.Add(Secret, nameIn(list[i]), path.Index(i).Child("name"))
		}
	case ends(word, "secretname"):
		u.Add(Secret, text, path)
	case ends(word, "configmapname"):
		u.Add(ConfigMap, text, path)
	case ends(word, "secret", "secretref", "secretkeyref", "urifrom"):
		u.Add(Secret, nameIn(value), path.Child("name"))
	case ends(word, "configmap", "configmapref", "configmapkeyref"):
		u.Add(ConfigMap, nameIn(value), path.Child("name"))
	}
}

func ends(word string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(word, s) })
}

func nameIn(value any) string {
	object, _ := value.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// Without takes uses of these names out: things that the manager makes itself, or ships.
func (u *References) Without(kind Kind, names ...string) {
	u.all = slices.DeleteFunc(u.all, func(use Reference) bool { return use.Kind == kind && slices.Contains(names, use.Name) })
}

// new returns what is used now and was not before, each thing once.
func (u References) new(before References) []Reference {
	seen := map[Reference]bool{}
	for _, use := range before.all {
		use.path = ""
		seen[use] = true
	}
	var out []Reference
	for _, use := range u.all {
		bare := use
		bare.path = ""
		if !seen[bare] {
			seen[bare] = true
			out = append(out, use)
		}
	}
	return out
}

// String names the use in a message.
func (u Reference) String() string { return fmt.Sprintf("%s %q", u.Kind, u.Name) }
