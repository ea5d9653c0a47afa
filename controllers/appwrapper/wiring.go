package appwrapper

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	webhook "github.com/odh-platform/odh-platform-operator/webhooks/appwrapper"
)

// newWorkloads returns what carries out decisions, with an empty memory.
func newWorkloads(settings Settings, applier *apply.Applier, k *kinds, mapper meta.RESTMapper) *workloads {
	return &workloads{
		settings: settings, applier: applier, kinds: k, mapper: mapper, memory: newMemory(settings.Clock), refusal: webhook.Refusal,
		instantiate: func(aw *awv1beta2.AppWrapper, index int) (*unstructured.Unstructured, []string, error) {
			return instantiate(aw, index, settings)
		},
	}
}
