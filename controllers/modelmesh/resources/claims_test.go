package resources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/modelmesh"
)

// newModelInClaim returns a model of a format whose files are in a claim.
func newModelInClaim(format, claim string) modelmesh.Model {
	return modelmesh.Model{Spec: v1alpha1.PredictorSpec{
		ModelType: v1alpha1.ModelType{Name: format}, Storage: &v1alpha1.Storage{Parameters: map[string]string{"type": "pvc", "name": claim}},
	}}
}

// [modelmesh-93] [modelmesh-94] [modelmesh-95] [modelmesh-96] Claims returns the listed claims, and those of models if all claims are allowed.
func TestClaims(t *testing.T) {
	existing := []string{"shelf", "other-shelf", "with.dots"}
	models := []modelmesh.Model{
		newModelInClaim("onnx", "other-shelf"), newModelInClaim("onnx", "missing"), newModelInClaim("other", "foreign"), newModelInClaim("onnx", ""), newModelInClaim("onnx", "other-shelf"),
		{Spec: v1alpha1.PredictorSpec{ModelType: v1alpha1.ModelType{Name: "onnx"}}},
		{Spec: v1alpha1.PredictorSpec{ModelType: v1alpha1.ModelType{Name: "onnx"}, Storage: &v1alpha1.Storage{Parameters: map[string]string{"type": "s3", "name": "shelf"}}}},
	}
	for name, c := range map[string]struct {
		form            Form
		fromSecret      []string
		allowAny        bool
		claims, missing []string
	}{
		"no claims":                               {Current, nil, false, nil, nil},
		"[modelmesh-93] listed":                   {Current, []string{"with.dots", "shelf"}, false, []string{"shelf", "with.dots"}, nil},
		"[modelmesh-94] not listed":               {Current, []string{"shelf"}, false, []string{"shelf"}, nil},
		"[modelmesh-95] any":                      {Current, []string{"shelf"}, true, []string{"other-shelf", "shelf"}, []string{"missing"}},
		"[M39] listed and missing":                {Current, []string{"shelf", "missing"}, false, []string{"shelf"}, []string{"missing"}},
		"legacy form, listed and missing":         {Legacy, []string{"shelf", "missing"}, false, []string{"missing", "shelf"}, nil},
		"[modelmesh-96] any and missing":          {Legacy, nil, true, []string{"other-shelf"}, []string{"missing"}},
		"invalid names":                           {Legacy, []string{"", "../etc", "Upper"}, false, nil, []string{"", "../etc", "Upper"}},
		"duplicates":                              {Current, []string{"other-shelf", "other-shelf"}, true, []string{"other-shelf"}, []string{"missing"}},
		"legacy form, listed and used by a model": {Legacy, []string{"missing"}, true, []string{"missing", "other-shelf"}, nil},
	} {
		claims, missing := Claims(ClaimInputs{
			Form: c.form, FromSecret: c.fromSecret, AllowAny: c.allowAny, Models: models, Labels: []string{"mt:onnx", "rt:own"},
			Exists: func(claim string) bool { return slices.Contains(existing, claim) },
		})
		if diff := cmp.Diff([][]string{c.claims, c.missing}, [][]string{claims, missing}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
