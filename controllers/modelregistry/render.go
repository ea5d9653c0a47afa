package modelregistry

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/odh-platform/odh-platform-operator/apis/modelregistry/v1beta1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelregistry/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
	rules "github.com/odh-platform/odh-platform-operator/webhooks/modelregistry"
)

// Render returns the objects that a registry would get in an empty cluster with the given APIs, without the Secret of a generated database,
// whose password is random. Unknown fields are errors.
func Render(settings Settings, served capability.Set, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	m := &v1beta1.ModelRegistry{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, m, true); err != nil {
		return nil, fmt.Errorf("decoding ModelRegistry %s: %w", object.GetName(), err)
	}
	platform := &servers.Platform{ModelRegistry: settings.ModelRegistry, Served: served}
	ruleSettings := RuleSettings(settings.ModelRegistry, served)
	m, err := rules.Default(m, ruleSettings)
	if err != nil {
		return nil, fmt.Errorf("defaulting ModelRegistry %s: %w", object.GetName(), err)
	}
	if errs := rules.Validate(m, ruleSettings); len(errs) > 0 {
		return nil, fmt.Errorf("ModelRegistry %s: %w", m.Name, errs.ToAggregate())
	}
	desired, err := buildAll(m, platform)
	if err != nil {
		return nil, fmt.Errorf("building the objects of ModelRegistry %s: %w", m.Name, err)
	}
	return apply.Render(desired, ComponentName, m)
}

func buildAll(m *v1beta1.ModelRegistry, platform *servers.Platform) (apply.Desired, error) {
	in := buildInputs(m, platform)
	if !generatesDatabase(m) {
		return resources.Build(withDefaults(m, platform, credentials{}), in)
	}
	effective := withDefaults(m, platform, requestedCredentials(m))
	desired := apply.Desired{resources.DatabaseClaim(m)}
	if hasBackups(m) {
		desired = append(desired, resources.BackupClaim(m))
	}
	database, err := resources.BuildDatabase(effective, in)
	if err != nil {
		return nil, err
	}
	desired = append(desired, database...)
	if hasBackups(m) {
		desired = append(desired, resources.BuildBackup(effective, in)...)
	}
	server, err := resources.Build(effective, in)
	return append(desired, server...), err
}
