package raycluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/ray"
)

// noCertificates issues nothing.
type noCertificates struct{}

func (noCertificates) Keep(context.Context, *unstructured.Unstructured, ray.Mode) (time.Duration, error) {
	return 0, nil
}
func (noCertificates) Wanted(ray.Cluster, ray.Mode) apply.Desired { return nil }
func (noCertificates) Forget(types.UID)                           {}
