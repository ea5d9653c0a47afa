package raycluster

import (
	"encoding/json"
	"errors"
	"reflect"

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

var mustBe = map[reflect.Kind]string{
	reflect.Struct: "must be an object", reflect.Map: "must be an object", reflect.Slice: "must be a list", reflect.String: "must be a string",
}

// shapeErrors refuses what would be overlooked otherwise: values of another type on the way to the pod templates. The schema
// of the CRD says the same, but after the defaults.
func shapeErrors(c raycluster.Cluster) field.ErrorList {
	if c.Object()["metadata"] == nil {
		return field.ErrorList{field.Required(field.NewPath("metadata"), mustBe[reflect.Struct])}
	}
	text, err := json.Marshal(c.Object())
	if err == nil {
		err = json.Unmarshal(text, &shape{})
	}
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return field.ErrorList{field.Invalid(field.NewPath(wrong.Field), wrong.Value, mustBe[wrong.Type.Kind()])}
	}
	return nil
}
