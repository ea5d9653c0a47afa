package appwrapper

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/appwrapper/podset"
)

// identity is the place of a component.
type identity struct {
	apiVersion, kind, name string
	// prefix is how the name begins when the template leaves the rest of it open.
	prefix string
}

// identify reads the identity of a component from its template. What cannot be read stays empty: creation reports it.
func identify(aw *awv1beta2.AppWrapper, index int) identity {
	u, err := podset.Decode(&aw.Spec.Components[index])
	if err != nil {
		return identity{}
	}
	id := identity{apiVersion: u.GetAPIVersion(), kind: u.GetKind(), name: u.GetName()}
	if id.name == "" && u.GetGenerateName() != "" {
		id.prefix = u.GetGenerateName()
		id.name = generateName(id.prefix, aw.UID, index)
	}
	return id
}

const (
	// maxGenerated is the longest name that every kind takes, those included whose objects make others of longer names: a
	// CronJob takes no more.
	maxGenerated = 52
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
