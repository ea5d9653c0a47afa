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

// shape has the fields that lead to what is injected. The types of Kubernetes would parse quantities, which may take minutes.
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

// shapeErrors refuses what would be overlooked otherwise: values of another type on the way to the pod templates. The schema
// of the CRD says the same, but after the defaults.
func shapeErrors(c raycluster.Cluster) field.ErrorList {
	if c.Object()["metadata"] == nil {
		return field.ErrorList{field.Required(field.NewPath("metadata"), typeMessages[reflect.Struct])}
	}
	text, err := json.Marshal(c.Object())
	if err == nil {
		err = json.Unmarshal(text, &shape{})
	}
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return field.ErrorList{field.Invalid(field.NewPath(wrong.Field), wrong.Value, typeMessages[wrong.Type.Kind()])}
	}
	return nil
}

const (
	// maxName is the longest name of a RayCluster for which KubeRay makes pods, in bytes.
	maxNameLength = 53
	// suffix is the number of characters that the API server adds to a generateName.
	suffixLength = 5
)

// generatedName is the name of a cluster that only says how its name shall begin: Secrets in its pods are named after it, so
// it has to be known now. It follows from the request, like the one that the API server would draw.
func generatedName(generateName string, request types.UID) string {
	sum := sha256.Sum256([]byte(request))
	return generateName[:min(len(generateName), maxNameLength-suffixLength)] + hex.EncodeToString(sum[:])[:suffixLength]
}

// nameErrors refuses names for which KubeRay makes no pods, and of which no label can be made (R19).
func nameErrors(name string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if len(name) > maxNameLength {
		detail := fmt.Sprintf("must be at most %d characters, because Services are named after it: this one has %d; choose a shorter name", maxNameLength, len(name))
		return field.ErrorList{field.Invalid(path, name, detail)}
	}
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(problems, "; ")+": Services are named after it")}
	}
	return nil
}

// hostWarnings tells of hosts that are not what a user expects, because a label of a host name has at most 63 characters.
func hostWarnings(c raycluster.Cluster) []string {
	expected := c.Names().Dashboard + "-" + c.Namespace()
	if c.DashboardHost() == expected {
		return nil
	}
	return []string{fmt.Sprintf("%s is longer than a label of a host name may be: the dashboard gets the host %s", expected, c.DashboardHost())}
}
