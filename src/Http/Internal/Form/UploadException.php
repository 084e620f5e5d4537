<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Internal\Warnings;
use Spindle\SpindleException;

final class UploadException extends \RuntimeException implements SpindleException
{
    /** @param string $warning warning of the PHP function that failed; '' for none */
    public static function notStored(string $directory, string $warning): self
    {
        return new self("Could not store an uploaded file in {$directory}: " . self::reason($warning));
    }

    public static function notMoved(string $path, string $warning): self
    {
        return new self("Could not move the uploaded file to {$path}: " . self::reason($warning));
    }

    public static function alreadyMoved(): self
    {
        return new self('The uploaded file was already moved');
    }

    public static function closed(): self
    {
        return new self('The stream of the uploaded file was closed');
    }

    public static function requestEnded(): self
    {
        return new self('The uploaded file is not available any more, because the request has ended');
    }

    /** @param int $error one of UPLOAD_ERR_* */
    public static function notUploaded(int $error): self
    {
        return new self(
            $error === \UPLOAD_ERR_NO_FILE ? 'No file was chosen' : "The upload failed with error {$error}",
        );
    }

    private static function reason(string $warning): string
    {
        return $warning === '' ? 'unknown error' : Warnings::reason($warning);
    }
}
