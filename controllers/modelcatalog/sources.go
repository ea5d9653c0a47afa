package modelcatalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aihubv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/aihub/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelcatalog/resources"
	"github.com/odh-platform/odh-platform-operator/pkg/redact"
)

const (
	// maxSourceNameLength leaves room for LabelledPrefix in the name of a volume.
	maxSourceNameLength = 55
	// maxSources limits the mounted ConfigMaps. Anyone who may create ConfigMaps can add them to the pod.
	maxSources = 50
	// maxReportedSources limits the status, as does the schema of Catalog.
	maxReportedSources = 100
	// maxCheckedBytes limits the parsed content of one source: a parser needs hundreds of times its size in memory.
	maxCheckedBytes = 256 << 10
	// maxContentProblems limits the number of contents whose problems are stored.
	maxContentProblems = 1 << 16
	// maxProblemBytes limits the error of the parser in the message about one source.
	maxProblemBytes = 200
)

// Reasons in the status of a source.
const (
	ReasonMounted     = "Mounted"
	ReasonContent     = "ContentNotUnderstood"
	ReasonMissingKey  = "KeyMissing"
	ReasonNameTooLong = "NameTooLong"
	ReasonNameInvalid = "NameInvalid"
	ReasonTooMany     = "TooMany"
	ReasonPostponed   = "Postponed"
)

// sourceCandidate is a ConfigMap with SourceLabel.
type sourceCandidate struct {
	name string
	// hasKey is true if the key sources.yaml exists. contentProblem is the error in its value, or "".
	hasKey         bool
	contentProblem string
}

// trimContent removes the content of a ConfigMap, which may be large, but keeps SourcesKey with an empty value.
func trimContent(in any) (any, error) {
	m, ok := in.(*corev1.ConfigMap)
	if !ok {
		return in, nil
	}
	_, hasKey := m.Data[resources.SourcesKey]
	m.Data, m.BinaryData, m.Annotations, m.ManagedFields = nil, nil, nil, nil
	if hasKey {
		m.Data = map[string]string{resources.SourcesKey: ""}
	}
	return m, nil
}

// listCandidates returns the ConfigMaps with SourceLabel in a namespace.
func (e *extraCaches) listCandidates(ctx context.Context, namespace string) ([]sourceCandidate, error) {
	list := &corev1.ConfigMapList{}
	if err := e.labelledConfigMaps.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ConfigMaps with sources: %w", err)
	}
	var candidates []sourceCandidate
	for i := range list.Items {
		m := &list.Items[i]
		c := sourceCandidate{name: m.Name}
		if _, c.hasKey = m.Data[resources.SourcesKey]; c.hasKey {
			problem, checked := e.contentProblems.Get(objectVersion(m))
			if c.contentProblem, _ = problem.(string); !checked {
				var err error
				if c.contentProblem, err = e.checkContent(ctx, m); err != nil {
					return nil, err
				}
				e.contentProblems.Add(objectVersion(m), c.contentProblem)
			}
		}
		candidates = append(candidates, c)
	}
	return candidates, nil
}

// checkContent reads a ConfigMap from the API server and returns the problem of its content, or "" if the ConfigMap does not exist.
func (e *extraCaches) checkContent(ctx context.Context, m *corev1.ConfigMap) (string, error) {
	list := &corev1.ConfigMapList{}
	if err := e.apiReader.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingFields{metav1.ObjectNameField: m.Name}); err != nil {
		return "", fmt.Errorf("reading ConfigMap %s: %w", m.Name, err)
	}
	if len(list.Items) == 0 {
		return "", nil // deleted, but still in the cache
	}
	return contentProblem(list.Items[0].Data[resources.SourcesKey]), nil
}

// contentProblem returns why sources are invalid or not checked, or "". Unknown sections and keys are ignored, because a newer server may
// support them.
func contentProblem(text string) string {
	if len(text) > maxCheckedBytes {
		return fmt.Sprintf("the content has %d bytes, and at most %d are checked: split it into several ConfigMaps", len(text), maxCheckedBytes)
	}
	document, err := resources.ParseSources(text)
	switch {
	case err != nil:
		return redact.Clip(err.Error(), maxProblemBytes)
	case document == nil:
		return "the content is empty: add a section such as catalogs"
	}
	for _, section := range []string{"catalogs", "model_catalogs", "mcp_catalogs", "agent_catalogs", "serving_runtime_catalogs", "labels"} {
		list := resources.MapValue(document.Content[0], section)
		if list == nil || list.Tag == "!!null" {
			continue
		}
		if list.Kind != yaml.SequenceNode {
			return section + " must be a list"
		}
		for i, entry := range list.Content {
			if entry.Kind != yaml.MappingNode && entry.Kind != yaml.AliasNode {
				return fmt.Sprintf("%s[%d] must be a map", section, i)
			}
		}
	}
	return ""
}

// sourceSelection is the result for all ConfigMaps with SourceLabel.
type sourceSelection struct {
	// mounted holds the names that the pod mounts, in order.
	mounted []string
	// postponed is true if new sources wait because the pod was replaced too often recently.
	postponed bool
	statuses  []aihubv1alpha1.CatalogSource
	omitted   int32
}

// selectSources selects at most maxSources sources to mount, mounted ones first. It adds new ones only if mayAdd returns true. The value of
// SourcesKey does not matter, because editing a source must not replace the pod.
func selectSources(candidates []sourceCandidate, current []string, mayAdd func() bool) sourceSelection {
	slices.SortFunc(candidates, func(a, b sourceCandidate) int { return cmp.Compare(a.name, b.name) })
	mounted := func(c sourceCandidate) bool { return slices.Contains(current, c.name) }
	isNew := func(c sourceCandidate) bool { return !mounted(c) }
	usable := slices.DeleteFunc(slices.Clone(candidates), func(c sourceCandidate) bool { return c.rejection() != nil })
	usable = slices.Concat(slices.DeleteFunc(slices.Clone(usable), isNew), slices.DeleteFunc(usable, mounted))
	usable = usable[:min(len(usable), maxSources)]
	selection := sourceSelection{postponed: slices.ContainsFunc(usable, isNew) && !mayAdd()}
	for _, c := range candidates {
		status := aihubv1alpha1.CatalogSource{Name: c.name, State: aihubv1alpha1.SourceRejected}
		switch rejection := c.rejection(); {
		case rejection != nil:
			status.Reason, status.Message = rejection.reason, rejection.message
		case !slices.Contains(usable, c):
			status.Reason, status.Message = ReasonTooMany, fmt.Sprintf("only %d sources can be mounted; merge some of them", maxSources)
		case selection.postponed && isNew(c):
			status.Reason, status.Message = ReasonPostponed, "too many sources were added recently; waiting a few minutes to mount this one"
		default:
			status.State, status.Reason = aihubv1alpha1.SourceAccepted, ReasonMounted
			if c.contentProblem != "" {
				status.Reason, status.Message = ReasonContent, "the ConfigMap is mounted, but its key "+resources.SourcesKey+" is not valid or cannot be checked: "+c.contentProblem
			}
			selection.mounted = append(selection.mounted, c.name)
		}
		if len(selection.statuses) == maxReportedSources {
			selection.omitted++
			continue
		}
		selection.statuses = append(selection.statuses, status)
	}
	return selection
}

// sourceRejection is the reason and message in the status of a source that cannot be mounted.
type sourceRejection struct{ reason, message string }

func (c sourceCandidate) rejection() *sourceRejection {
	switch {
	case !c.hasKey:
		return &sourceRejection{ReasonMissingKey, "the ConfigMap has no key " + resources.SourcesKey + "; add it, or remove the label " + resources.SourceLabel}
	case len(c.name) > maxSourceNameLength:
		return &sourceRejection{ReasonNameTooLong, fmt.Sprintf("the name of the ConfigMap has %d characters and can have at most %d; recreate it under a shorter name", len(c.name), maxSourceNameLength)}
	case len(validation.IsDNS1123Label(c.name)) > 0:
		return &sourceRejection{ReasonNameInvalid, "the name of the ConfigMap must consist of lower-case letters, digits and hyphens; recreate it under a name without dots"}
	}
	return nil
}

// mountedSources returns the ConfigMaps that are mounted because of SourceLabel, from the volumes of a pod template.
func mountedSources(volumes []corev1.Volume) []string {
	var names []string
	for _, v := range volumes {
		if v.ConfigMap != nil && v.Name == resources.LabelledPrefix+v.ConfigMap.Name {
			names = append(names, v.ConfigMap.Name)
		}
	}
	return names
}
