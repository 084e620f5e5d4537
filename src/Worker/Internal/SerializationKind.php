<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\NotCopyable;

/** The way in which serialize() reads the objects of a class. */
enum SerializationKind
{
    case Properties;
    case SerializeMethod;
    case InternalSerializeMethod; // PHP or an extension defines the method
    case SleepMethod;
    case SerializableInterface;
    case Date;
    case ProcessBound; // the class uses NotCopyable: its objects belong to this process
    case Emptied; // the objects lose their contents: see EMPTIED_CLASSES

    /**
     * PHP classes whose objects lose their contents in serialize() without an error. PHP 8.5 serializes heaps, but an
     * older PHP would restore them empty.
     */
    private const EMPTIED_CLASSES = [
        'SplHeap', 'SplPriorityQueue', 'IteratorIterator', 'RecursiveIteratorIterator', 'MultipleIterator', 'XMLReader',
        'XMLWriter', 'XSLTProcessor', 'DOMNodeList', 'DOMNamedNodeMap', 'Dom\NodeList', 'Dom\NamedNodeMap',
        'Dom\DtdNamedNodeMap', 'Dom\HTMLCollection', 'ZipArchive',
    ];

    /** Finds an object's kind from its class alone: a method call could throw, or a proxy could forward the call. */
    public static function of(object $value): self
    {
        $class = $value::class;
        if (\in_array(NotCopyable::class, class_uses($class), true)) {
            return self::ProcessBound;
        }
        if ($class === \DateTimeImmutable::class || $class === \DateTime::class) {
            return self::Date;
        }
        if (method_exists($class, '__serialize')) {
            $isInternal = (new \ReflectionMethod($class, '__serialize'))->isInternal();

            return match (true) {
                !$isInternal => self::SerializeMethod,
                self::isEmptied($value) => self::Emptied,
                default => self::InternalSerializeMethod,
            };
        }
        return match (true) {
            $value instanceof \Serializable => self::SerializableInterface,
            method_exists($class, '__sleep') => self::SleepMethod,
            default => self::isEmptied($value) ? self::Emptied : self::Properties,
        };
    }

    /** Returns whether serialize() calls a method that may suspend the fiber. */
    public function maySuspend(): bool
    {
        return $this === self::SerializeMethod || $this === self::SleepMethod || $this === self::SerializableInterface;
    }

    private static function isEmptied(object $value): bool
    {
        return array_filter(self::EMPTIED_CLASSES, static fn(string $class): bool => is_a($value, $class)) !== [];
    }
}
