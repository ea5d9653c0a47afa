// Package names holds the label and annotation keys that this operator puts on objects, and the rules by which
// names are made. Names and labels are how a running system finds its own objects again, so they are decided in
// one place and never depend on chance.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

const (
	// OperatorLabel marks every object that this operator writes; the cache of the manager selects on it.
	OperatorLabel = "platform.opendatahub.io/operator"
	// OperatorName is the value of OperatorLabel.
	OperatorName = "odh-platform-operator"
	// ComponentLabel names the component that wrote an object.
	ComponentLabel = "platform.opendatahub.io/component"
	// PausedAnnotation makes the controller leave everything as it is while its value on the custom resource is true, see [Paused].
	PausedAnnotation = "platform.opendatahub.io/paused"
)

// components are the values that ComponentLabel has, in order.
var componentNames = []string{"appwrapper", "mlflow", "modelcatalog", "modelmesh", "modelregistry", "olm", "platform", "raycluster"}

// IsComponent says whether a component of this operator has a name.
func IsComponent(name string) bool { return slices.Contains(componentNames, name) }

// hashLength is the number of hexadecimal digits that tell two truncated names apart.
const hashLength = 8

// Labels returns the two labels that every object written for a component bears. The caller may change the map.
func Labels(component string) map[string]string {
	return map[string]string{OperatorLabel: OperatorName, ComponentLabel: component}
}

// Paused reads PausedAnnotation: true, yes, on and 1 pause, in any case; false, no, off, 0 and an empty value do not, nor does its
// absence. Other values are not understood and do not pause.
func Paused(annotations map[string]string) (paused, understood bool) {
	switch strings.ToLower(strings.TrimSpace(annotations[PausedAnnotation])) {
	case "true", "t", "yes", "y", "on", "1":
		return true, true
	case "false", "f", "no", "n", "off", "0", "":
		return false, true
	}
	return false, false
}

// Truncate returns name when it has at most limit bytes, and otherwise a shortened name of at most limit bytes that
// ends in a hash of the whole name, so that two long names with the same beginning stay apart. The same input always
// gives the same output. A shortened name ends in a letter or a digit, as DNS labels demand.
func Truncate(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := hex.EncodeToString(sum[:])[:max(0, min(hashLength, limit))]
	head := strings.TrimRightFunc(name[:max(0, limit-hashLength-1)], func(r rune) bool { return !isAlphanumeric(r) })
	if head == "" {
		return tail
	}
	return head + "-" + tail
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
