package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// row is a row of a table.
type row struct {
	path, requiredMark, typ, defaultValue, description string
	rules                                              []string
}

// isBelow reports whether the field is a descendant of another one.
func (r row) isBelow(other row) bool {
	rest, below := strings.CutPrefix(r.path, other.path)
	return below && strings.ContainsAny(rest[:1], ".[{")
}

// kubernetesType is a type of Kubernetes. CRDs do not name types, so a type is recognized by the field name and by a typical child field.
type kubernetesType struct{ typ, child string }

// kubernetesTypes are the types whose fields are not listed, by field name.
var kubernetesTypes = map[string]kubernetesType{
	"affinity": {"Affinity", "podAntiAffinity"}, "env": {"EnvVar", "valueFrom"}, "envFrom": {"EnvFromSource", "configMapRef"},
	"podSecurityContext": {"PodSecurityContext", "fsGroup"}, "securityContext": {"SecurityContext", "capabilities"},
	"tolerations": {"Toleration", "effect"}, "resources": {"ResourceRequirements", "requests"}, "conditions": {"Condition", "lastTransitionTime"},
	"networkPolicyAdditionalEgressRules": {"NetworkPolicyEgressRule", "to"}, "networkPolicyEgressRules": {"NetworkPolicyEgressRule", "to"},
	"networkPolicyIngressFrom": {"NetworkPolicyPeer", "ipBlock"}, "resourceClaims": {"PodResourceClaim", "resourceClaimTemplateName"},
	"workspaceLabelSelector": {"LabelSelector", "matchLabels"}, "selector": {"LabelSelector", "matchLabels"},
	"dataSource": {"TypedLocalObjectReference", "apiGroup"}, "dataSourceRef": {"TypedObjectReference", "apiGroup"},
	"imagePullSecrets": {"LocalObjectReference", "name"}, "schedulingGates": {"PodSchedulingGate", "name"},
	"topologySpreadConstraints": {"TopologySpreadConstraint", "topologyKey"}, "volumeMounts": {"VolumeMount", "mountPath"},
	"projected": {"ProjectedVolumeSource", "sources"}, "csi": {"CSIVolumeSource", "driver"}, "emptyDir": {"EmptyDirVolumeSource", "sizeLimit"},
	"configMap": {"ConfigMapVolumeSource", "items"}, "secret": {"SecretVolumeSource", "items"},
	"persistentVolumeClaim": {"PersistentVolumeClaimVolumeSource", "claimName"},
	"catalog":               {"ResourceRequirements", "requests"}, "init": {"ResourceRequirements", "requests"},
	"kubeRBACProxy": {"ResourceRequirements", "requests"}, "postgres": {"ResourceRequirements", "requests"},
}

// kubernetesTypeOf returns the Kubernetes type of a field, or "".
func kubernetesTypeOf(name string, schema *apiextensionsv1.JSONSchemaProps) string {
	if schema.Items != nil && schema.Items.Schema != nil {
		schema = schema.Items.Schema
	}
	if _, found := schema.Properties[kubernetesTypes[name].child]; found {
		return kubernetesTypes[name].typ
	}
	return ""
}

// fields returns the fields of a schema, parents before children.
func fields(path string, schema *apiextensionsv1.JSONSchemaProps) []row {
	var rows []row
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		fieldRow := row{
			path: path + "." + name, typ: typeOf(name, &property), description: property.Description, rules: rulesOf(&property),
		}
		if slices.Contains(schema.Required, name) {
			fieldRow.requiredMark = `\*`
		}
		if property.Default != nil {
			fieldRow.defaultValue = string(property.Default.Raw)
		}
		rows = append(rows, fieldRow)
		if kubernetesTypeOf(name, &property) == "" {
			rows = append(rows, childFields(fieldRow.path, &property)...)
		}
	}
	return rows
}

// childFields returns the fields of a field, of its items, or of its values.
func childFields(path string, schema *apiextensionsv1.JSONSchemaProps) []row {
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		return childFields(path+"[]", schema.Items.Schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return childFields(path+"{}", schema.AdditionalProperties.Schema)
	default:
		return fields(path, schema)
	}
}

// typeOf returns the type of a field as the page shows it.
func typeOf(name string, schema *apiextensionsv1.JSONSchemaProps) string {
	kubernetesName := kubernetesTypeOf(name, schema)
	switch {
	case schema.XEmbeddedResource:
		return "any object"
	case schema.Items != nil && schema.Items.Schema != nil && kubernetesName != "":
		return "list of " + kubernetesName
	case schema.Items != nil && schema.Items.Schema != nil:
		return "list of " + plural(typeOf("", schema.Items.Schema))
	case kubernetesName != "":
		return kubernetesName
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map of " + plural(typeOf("", schema.AdditionalProperties.Schema))
	case schema.XIntOrString:
		return "quantity or number"
	case schema.Format == "date-time":
		return "time"
	case schema.Type == "" || schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields:
		return "any"
	default:
		return schema.Type
	}
}

func plural(typ string) string {
	if strings.Contains(typ, " ") || typ == "any" {
		return typ
	}
	return typ + "s"
}

// rulesOf returns the validation rules of a value.
func rulesOf(schema *apiextensionsv1.JSONSchemaProps) []string {
	var rules []string
	add := func(format string, args ...any) { rules = append(rules, fmt.Sprintf(format, args...)) }
	if len(schema.Enum) > 0 {
		var values []string
		for _, value := range schema.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		add("one of %s", strings.Join(values, ", "))
	}
	addBounds(schema, add)
	if schema.Pattern != "" {
		add("matches `%s`", schema.Pattern)
	}
	if len(schema.XListMapKeys) > 0 {
		add("one item for each %s", strings.Join(schema.XListMapKeys, ", "))
	}
	for _, rule := range schema.XValidations {
		add("%s", ruleText(rule))
	}
	return rules
}

func addBounds(schema *apiextensionsv1.JSONSchemaProps, add func(string, ...any)) {
	if schema.Minimum != nil {
		add("at least %g", *schema.Minimum)
	}
	if schema.Maximum != nil {
		add("at most %g", *schema.Maximum)
	}
	for _, bound := range []struct {
		value *int64
		text  string
	}{
		{schema.MinLength, "at least %d characters"}, {schema.MaxLength, "at most %d characters"},
		{schema.MinItems, "at least %d items"}, {schema.MaxItems, "at most %d items"},
		{schema.MinProperties, "at least %d entries"}, {schema.MaxProperties, "at most %d entries"},
	} {
		if bound.value != nil {
			add(bound.text, *bound.value)
		}
	}
}

// ruleText returns the message of a rule, or else the rule itself.
func ruleText(rule apiextensionsv1.ValidationRule) string {
	if rule.Message != "" {
		return rule.Message
	}
	return "`" + rule.Rule + "`"
}
