package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "components.platform.opendatahub.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package. It always returns nil; a runtime.SchemeBuilder requires a result.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &AIHub{}, &AIHubList{}, &MLflowOperator{}, &MLflowOperatorList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
