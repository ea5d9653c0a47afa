package raycluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
)

// shape has the fields on the path to injected elements. It has no quantities, because parsing a crafted quantity can take minutes.
type shape struct {
	Metadata struct {
		Annotations map[string]any `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		AutoscalerOptions containerShape `json:"autoscalerOptions"`
		HeadGroupSpec     groupShape     `json:"headGroupSpec"`
		WorkerGroupSpecs  []groupShape   `json:"workerGroupSpecs"`
	} `json:"spec"`
}

type groupShape struct {
	Template struct {
		Spec struct {
			ServiceAccountName string           `json:"serviceAccountName"`
			Containers         []containerShape `json:"containers"`
			InitContainers     []element        `json:"initContainers"`
			Volumes            []element        `json:"volumes"`
		} `json:"spec"`
	} `json:"template"`
}

type containerShape struct {
	Env          []element `json:"env"`
	VolumeMounts []element `json:"volumeMounts"`
}

var typeMessages = map[reflect.Kind]string{
	reflect.Struct: "must be an object", reflect.Map: "must be an object", reflect.Slice: "must be a list", reflect.String: "must be a string",
}

// shapeErrors returns an error for missing metadata, or for the first value of a wrong type on the path to injected elements, because the
// mutating webhook would ignore such values. The schema of the CRD rejects them too, but only after the mutating webhooks.
func shapeErrors(c raycluster.Cluster) field.ErrorList {
	if c.Object()["metadata"] == nil {
		return field.ErrorList{field.Required(field.NewPath("metadata"), typeMessages[reflect.Struct])}
	}
	text, err := json.Marshal(c.Object())
	if err == nil {
		err = json.Unmarshal(text, &shape{})
	}
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return field.ErrorList{field.Invalid(field.NewPath(typeErr.Field), typeErr.Value, typeMessages[typeErr.Type.Kind()])}
	}
	return nil
}

const (
	// maxNameLength is the maximum length in bytes of the name of a RayCluster for which KubeRay creates pods.
	maxNameLength = 53
	// suffixLength is the number of characters that the API server appends to generateName.
	suffixLength = 5
)

// generatedName returns a name for generateName, derived from the UID of the request. The webhook needs the name early, because the names
// of Secrets in the pod templates contain it.
func generatedName(generateName string, requestUID types.UID) string {
	sum := sha256.Sum256([]byte(requestUID))
	return generateName[:min(len(generateName), maxNameLength-suffixLength)] + hex.EncodeToString(sum[:])[:suffixLength]
}

// validateName rejects names for which KubeRay creates no pods, and names that are not valid DNS labels [R19].
func validateName(name string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if len(name) > maxNameLength {
		detail := fmt.Sprintf("must be at most %d characters, because Services are named after it: this one has %d; choose a shorter name", maxNameLength, len(name))
		return field.ErrorList{field.Invalid(path, name, detail)}
	}
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(problems, "; ")+": choose another name, because Services are named after it")}
	}
	return nil
}

// hostWarnings returns a warning if the host of the dashboard is truncated, because a DNS label has at most 63 characters.
func hostWarnings(c raycluster.Cluster) []string {
	expected := c.Names().Dashboard + "-" + c.Namespace()
	if c.DashboardHostLabel() == expected {
		return nil
	}
	return []string{fmt.Sprintf("%s is longer than a label of a host name may be: the dashboard gets the host %s.DOMAIN; choose a shorter name to avoid this", expected, c.DashboardHostLabel())}
}
