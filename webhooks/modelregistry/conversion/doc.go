// Package conversion turns stored and shown ModelRegistry objects of v1alpha1 and v1beta1 into each other.
//
// It works on decoded JSON and not on types, so that fields which this program does not know pass through. v1alpha1 can say
// less than v1beta1: what it cannot say is kept in one annotation of the v1alpha1 object, which no stored object has. On the
// way back each kept field returns to its place, unless the v1alpha1 object says something else about it meanwhile: who
// edits through the older version has the last word about what they see, and loses nothing of what they do not see.
package conversion
