package appwrapper

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
)

// identity is the place of a component.
type identity struct {
	apiVersion, kind, name string
	// generated: the template leaves the end of the name open.
	generated bool
}

// identify reads the identity of a component from its template. What cannot be read stays empty: creation reports it.
func identify(aw *awv1beta2.AppWrapper, index int) identity {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct{ Name, GenerateName string }
	}
	if err := json.Unmarshal(aw.Spec.Components[index].Template.Raw, &head); err != nil {
		return identity{}
	}
	id := identity{apiVersion: head.APIVersion, kind: head.Kind, name: head.Metadata.Name}
	if id.name == "" && head.Metadata.GenerateName != "" {
		id.name, id.generated = generateName(head.Metadata.GenerateName, aw.UID, index), true
	}
	return id
}

const (
	// maxGenerated is the length of a DNS label, which every kind takes as a name.
	maxGenerated = 63
	// suffixLength digits tell objects apart whose names begin alike.
	suffixLength = 10
)

// generateName completes a name always in the same way, so that an object whose creation was not answered is found again
// instead of being made twice.
func generateName(prefix string, uid types.UID, index int) string {
	sum := sha256.Sum256([]byte(string(uid) + "/" + strconv.Itoa(index)))
	suffix := hex.EncodeToString(sum[:])[:suffixLength]
	return prefix[:min(len(prefix), maxGenerated-suffixLength)] + suffix
}

// kindOf is the kind of a component that was announced.
func kindOf(status *awv1beta2.AppWrapperComponentStatus) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(status.APIVersion, status.Kind)
}

// controls tells whether an object is controlled by this very AppWrapper: group, kind and uid count, and not the name.
func controls(aw *awv1beta2.AppWrapper, object metav1.Object) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && isAppWrapper(owner) && owner.UID == aw.UID
}

// isAppWrapper tells whether a reference points at an AppWrapper of any version.
func isAppWrapper(ref *metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && group.Group == awv1beta2.GroupVersion.Group && ref.Kind == awv1beta2.Kind
}
