package resources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// inClaim returns a model of a format that is stored in a claim.
func inClaim(format, claim string) modelmesh.Model {
	return modelmesh.Model{Spec: v1alpha1.PredictorSpec{
		ModelType: v1alpha1.ModelType{Name: format}, Storage: &v1alpha1.Storage{Parameters: map[string]string{"type": "pvc", "name": claim}},
	}}
}

// [modelmesh-93] [modelmesh-94] [modelmesh-95] [modelmesh-96]
func TestClaims(t *testing.T) {
	existing := []string{"shelf", "any-shelf", "with.dots"}
	models := []modelmesh.Model{
		inClaim("onnx", "any-shelf"), inClaim("onnx", "gone"), inClaim("other", "foreign"), inClaim("onnx", ""), inClaim("onnx", "any-shelf"),
		{Spec: v1alpha1.PredictorSpec{ModelType: v1alpha1.ModelType{Name: "onnx"}}},
		{Spec: v1alpha1.PredictorSpec{ModelType: v1alpha1.ModelType{Name: "onnx"}, Storage: &v1alpha1.Storage{Parameters: map[string]string{"type": "s3", "name": "shelf"}}}},
	}
	for name, c := range map[string]struct {
		form            Form
		listed          []string
		any             bool
		claims, missing []string
	}{
		"no claims":                               {Current, nil, false, nil, nil},
		"[modelmesh-93] listed":                   {Current, []string{"with.dots", "shelf"}, false, []string{"shelf", "with.dots"}, nil},
		"[modelmesh-94] not listed":               {Current, []string{"shelf"}, false, []string{"shelf"}, nil},
		"[modelmesh-95] any":                      {Current, []string{"shelf"}, true, []string{"any-shelf", "shelf"}, []string{"gone"}},
		"[M39] listed and missing":                {Current, []string{"shelf", "gone"}, false, []string{"shelf"}, []string{"gone"}},
		"legacy mode, listed and missing":         {Legacy, []string{"shelf", "gone"}, false, []string{"gone", "shelf"}, nil},
		"[modelmesh-96] any and missing":          {Legacy, nil, true, []string{"any-shelf"}, []string{"gone"}},
		"no name":                                 {Legacy, []string{"", "../etc", "Upper"}, false, nil, []string{"", "../etc", "Upper"}},
		"twice":                                   {Current, []string{"any-shelf", "any-shelf"}, true, []string{"any-shelf"}, []string{"gone"}},
		"legacy mode, listed and used by a model": {Legacy, []string{"gone"}, true, []string{"any-shelf", "gone"}, nil},
	} {
		claims, missing := Claims(ClaimInputs{
			Form: c.form, FromSecret: c.listed, AllowAny: c.any, Models: models, Labels: []string{"mt:onnx", "rt:own"},
			Exists: func(claim string) bool { return slices.Contains(existing, claim) },
		})
		if diff := cmp.Diff([][]string{c.claims, c.missing}, [][]string{claims, missing}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
