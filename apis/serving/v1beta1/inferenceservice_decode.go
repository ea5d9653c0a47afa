package v1beta1

import (
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
)

// maxIgnored is the maximum number of entries in Ignored.
const maxIgnored = 10

// UnmarshalJSON decodes the view. In ModelMesh mode, it records up to maxIgnored fields of the spec that the view lacks.
func (s *InferenceService) UnmarshalJSON(data []byte) error {
	type plain InferenceService // has no methods
	var decoded plain
	unknown, err := kjson.UnmarshalStrict(data, &decoded, kjson.DisallowUnknownFields)
	if err != nil {
		return fmt.Errorf("decoding an InferenceService: %w", err)
	}
	*s = InferenceService(decoded)
	if s.Annotations[AnnotationDeploymentMode] != DeploymentModeModelMesh {
		return nil
	}
	for _, field := range unknown {
		e := kjson.FieldError(nil)
		if errors.As(field, &e) && strings.HasPrefix(e.FieldPath(), "spec.") && len(s.Ignored) < maxIgnored {
			s.Ignored = append(s.Ignored, e.FieldPath())
		}
	}
	return nil
}
