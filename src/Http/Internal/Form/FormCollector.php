<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\FormLimits;
use Spindle\Http\HttpException;

/** Collects the parts of a form: fields in memory, and each file in a {@see Spool}. */
final class FormCollector implements MultipartSink
{
    private readonly NameTree $fields;
    private readonly NameTree $files;
    private Part $part;
    private string $value = '';

    /** The file of the current part; null for a field, and when no file was chosen. */
    private ?Spool $spool = null;

    /** @var list<Spool> */
    private array $spools = [];

    private int $fieldCount = 0;
    private int $fileCount = 0;
    private int $textBytes = 0;

    public function __construct(
        private readonly FormLimits $limits,
        private readonly string $directory,
        private readonly ?DiskFiles $diskFiles = null,
    ) {
        $this->fields = new NameTree($limits->maxDepth);
        $this->files = new NameTree($limits->maxDepth);
        $this->part = new Part('', null, null);
    }

    /** @throws HttpException */
    public function begin(Part $part): void
    {
        $this->part = $part;
        $this->value = '';
        $this->spool = null;
        $this->countText(\strlen($part->name));
        if ($part->filename === null || $part->filename === '') {
            $this->checkCount('fields', ++$this->fieldCount, $this->limits->maxFields);

            return;
        }
        $this->checkCount('files', ++$this->fileCount, $this->limits->maxFiles);
        // If the field name has unmatched brackets, PHP drops this file and all later ones. Here, the form is refused.
        if (preg_match('/^[^[\]]*+(?:\[[^[\]]*+\])*+$/D', $part->name) !== 1) {
            throw BodyErrors::malformed('The field name of a file has brackets that do not match');
        }
        $this->spools[] = $this->spool = new Spool($this->directory, $this->diskFiles);
    }

    /** @throws HttpException */
    public function data(string $bytes): void
    {
        $this->spool?->write($bytes);
        if ($this->part->filename === null) {
            $this->countText(\strlen($bytes));
            $this->value .= $bytes;
        }
    }

    /** @throws HttpException */
    public function end(): void
    {
        if ($this->part->filename === null) {
            $this->fields->set($this->part->name, $this->value);
        } elseif ($this->spool !== null) {
            $this->files->set($this->part->name, new UploadedFile(
                $this->spool->file,
                $this->spool->size,
                \UPLOAD_ERR_OK,
                $this->part->filename,
                $this->part->type,
            ));
        } else {
            $this->files->set($this->part->name, new UploadedFile(null, 0, \UPLOAD_ERR_NO_FILE));
        }
    }

    public function form(): Form
    {
        return new Form($this->fields->values, $this->files->values);
    }

    public function discard(): void
    {
        foreach ($this->spools as $spool) {
            $spool->close();
        }
        $this->spools = [];
    }

    private function checkCount(string $what, int $count, int $limit): void
    {
        if ($count > $limit) {
            throw BodyErrors::tooMuch("The form has more than {$limit} {$what}");
        }
    }

    private function countText(int $bytes): void
    {
        $this->textBytes += $bytes;
        if ($this->textBytes > $this->limits->maxTextBytes) {
            throw BodyErrors::tooMuch(
                "The fields of the form are longer than {$this->limits->maxTextBytes} bytes "
                    . '(FormLimits::$maxTextBytes)',
            );
        }
    }
}
