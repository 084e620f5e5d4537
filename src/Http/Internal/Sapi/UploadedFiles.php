<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Sapi;

use Nyholm\Psr7\UploadedFile;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\Form\BodyErrors;

/** Converts PHP's $_FILES, which groups files by attribute, to the tree that PSR-7 requires. */
final class UploadedFiles
{
    /**
     * @param array<mixed> $files
     *
     * @return array<array-key, mixed> a tree of UploadedFileInterface
     *
     * @throws HttpException when the form ends within a file
     */
    public static function of(array $files): array
    {
        $tree = [];
        foreach ($files as $name => $file) {
            if (\is_array($file)) {
                $tree[$name] = self::node(
                    $file['tmp_name'] ?? null,
                    $file['size'] ?? null,
                    $file['error'] ?? null,
                    $file['name'] ?? null,
                    $file['type'] ?? null,
                );
            }
        }

        return $tree;
    }

    /** @return UploadedFile|array<array-key, mixed> */
    private static function node(mixed $path, mixed $size, mixed $error, mixed $name, mixed $type): UploadedFile|array
    {
        if (!\is_array($path)) {
            return self::file($path, $size, $error, $name, $type);
        }
        $tree = [];
        foreach ($path as $key => $childPath) {
            $child = static fn(mixed $node): mixed => \is_array($node) ? $node[$key] ?? null : null;
            $tree[$key] = self::node($childPath, $child($size), $child($error), $child($name), $child($type));
        }

        return $tree;
    }

    private static function file(mixed $path, mixed $size, mixed $error, mixed $name, mixed $type): UploadedFile
    {
        $code = \is_int($error) ? $error : \UPLOAD_ERR_NO_FILE;
        if ($code === \UPLOAD_ERR_PARTIAL) {
            throw BodyErrors::malformed('The form ends before its last boundary');
        }
        $textOrNull = static fn(mixed $value): ?string => \is_string($value) && $value !== '' ? $value : null;

        return new UploadedFile(
            $textOrNull($path) ?? '',
            \is_int($size) ? $size : 0,
            $code,
            $textOrNull($name),
            $textOrNull($type),
        );
    }
}
