package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "serving.kserve.io", Version: "v1alpha1"}

// The kinds of this package.
const (
	KindPredictor             = "Predictor"
	KindServingRuntime        = "ServingRuntime"
	KindClusterServingRuntime = "ClusterServingRuntime"
)

// AddToScheme registers the types of this package. It always returns nil; a runtime.SchemeBuilder requires a result.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Predictor{}, &PredictorList{},
		&ServingRuntime{}, &ServingRuntimeList{},
		&ClusterServingRuntime{}, &ClusterServingRuntimeList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
